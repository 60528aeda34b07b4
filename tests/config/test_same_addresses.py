"""Listeners of one file with one address: `trouter check` says which of them will not be opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from trouter.cli import main
from trouter.config import load
from trouter.config.same_addresses import same_addresses


def found(*listeners: str) -> list[str]:
    text = "".join(f"listener {{ {each} }}\n" for each in listeners)
    return [problem.message for problem in same_addresses(load(text=text))]


@pytest.mark.parametrize(
    ("first", "second", "address"),
    [
        ("host: localhost, port: amqp", "host: 0.0.0.0, port: 5672", "127.0.0.1 at port 5672"),
        ("host: 0.0.0.0, port: 7", "host: localhost, port: 7", "127.0.0.1 at port 7"),
        ("port: 7", "host: ::1, port: 7", "::1 at port 7"),
        ("host: ::1, port: 7", "host: ::, port: 7", "::1 at port 7"),
        ("port: 7", "host: 0.0.0.0, port: 7", "0.0.0.0 at port 7"),
        ("host: 127.0.0.1, port: 7", "host: LOCALHOST, port: 7", "127.0.0.1 at port 7"),
        ("host: a.example, port: 7", "host: A.example, port: 7", "a.example at port 7"),
    ],
)
def test_two_listeners_with_one_address(first: str, second: str, address: str) -> None:
    (message,) = found(first, second, "host: 127.0.0.1, port: 0")
    assert message.startswith("will not be opened: listener/")
    assert message.endswith(f" has its address, {address}")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("host: localhost, port: 7", "host: 0.0.0.0, port: 8"),
        ("host: 127.0.0.1, port: 0", "host: 127.0.0.1, port: 0"),
        ("host: 0.0.0.0, port: 7", "host: ::, port: 7"),
        ("host: localhost, port: 7, socketAddressFamily: IPv4", "host: ::1, port: 7"),
        ("host: 127.0.0.1, port: 7", "host: 127.0.0.2, port: 7"),
        ("host: a.example, port: 7", "host: b.example, port: 7"),
    ],
)
def test_two_listeners_with_two_addresses(first: str, second: str) -> None:
    assert not found(first, second)


def test_check_names_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.conf"
    path.write_text("listener { host: localhost, port: amqp }\nlistener { host: 0.0.0.0, port: amqp }\n")
    assert main(["check", str(path)]) == 1
    message = "will not be opened: listener/localhost:amqp has its address, 127.0.0.1 at port 5672"
    assert f"problem: {path}:2:1: listener.port: {message}" in capsys.readouterr().err
