"""URLs: their parts; the error for a wrong one never has the password."""

from __future__ import annotations

import pytest

from trouter.client.address import ServerAddress, parse_url


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("amqp://h", ServerAddress("h", 5672)),
        ("amqps://h", ServerAddress("h", 5671, secure=True)),
        ("h", ServerAddress("h", 5672)),
        ("127.0.0.1:7000", ServerAddress("127.0.0.1", 7000)),
        ("amqp://[::1]:7000/", ServerAddress("::1", 7000)),
        ("amqp://u:p@h:1", ServerAddress("h", 1, False, "u", "p")),
        ("amqp://u%40x:p%3A%2F%20@h", ServerAddress("h", 5672, False, "u@x", "p:/ ")),
        ("amqp://u@h", ServerAddress("h", 5672, False, "u", None)),
    ],
)
def test_a_url_is_taken_apart(url: str, address: ServerAddress) -> None:
    assert parse_url(url) == address


@pytest.mark.parametrize(
    "url",
    [
        "http://u:secret@h",
        "amqp://u:secret@h:notaport",
        "amqp://u:secret@h:70000",
        "amqp://u:secret@h/queue",
        "amqp://u:secret@h?x=1",
        "amqp://u:secret@",
        "",
    ],
)
def test_a_wrong_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match="the ") as caught:
        parse_url(url)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_password_is_not_shown() -> None:
    assert "secret" not in repr(parse_url("amqp://u:secret@h"))
