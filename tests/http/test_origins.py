"""The origins whose pages may open WebSockets."""

from __future__ import annotations

import pytest

from trouter.config.schema import BadValue
from trouter.config.texts import web_socket_origins
from trouter.http.upgrade import is_own_page

pytestmark = pytest.mark.attack


@pytest.mark.parametrize(
    ("origin", "host", "on_loopback"),
    [
        ("http://router.example", "router.example", False),
        ("https://router.example", "router.example", False),  # behind a proxy that speaks TLS
        ("http://router.example:8080", "router.example:8080", False),
        ("http://router.example", "router.example:80", False),
        ("https://router.example:443", "router.example", False),
        ("http://10.1.2.3:8080", "10.1.2.3:8080", False),
        ("http://[2001:db8::1]:8080", "[2001:db8::1]:8080", False),
        ("http://localhost:8080", "localhost:8080", True),
        ("http://127.0.0.1:8080", "127.0.0.1:8080", True),
        ("http://[::1]:8080", "[::1]:8080", True),
        ("http://console.localhost", "console.localhost", True),
    ],
)
def test_a_page_of_the_same_origin_is_recognised(origin: str, host: str, on_loopback: bool) -> None:
    assert is_own_page(origin, host, on_loopback=on_loopback)


@pytest.mark.parametrize(
    ("origin", "host", "on_loopback"),
    [
        ("http://evil.example", "router.example", False),
        ("http://router.example:8080", "router.example", False),
        ("http://router.example", "router.example:8080", False),
        ("http://router.example.evil", "router.example", False),
        ("http://router.example@evil.example", "router.example", False),
        ("http://evil@router.example", "router.example", False),
        ("http://router.example/x", "router.example", False),
        ("http://router.example?x", "router.example", False),
        ("http://router.example#x", "router.example", False),
        ("ws://router.example", "router.example", False),
        ("file://", "router.example", False),
        ("null", "router.example", False),
        ("null", "null", False),
        ("", "", False),
        ("http://", "", False),
        ("http://router.example:x", "router.example:x", False),
        ("http://router.example:99999", "router.example:99999", False),
        ("http://[::1", "[::1", False),
        ("http://router.example", "router.example, router.example", False),
        # A stranger's name that resolves to this machine.
        ("http://evil.example:8080", "evil.example:8080", True),
        ("http://localhost.evil.example", "localhost.evil.example", True),
        ("http://10.1.2.3:8080", "10.1.2.3:8080", True),
    ],
)
def test_any_other_page_is_not(origin: str, host: str, on_loopback: bool) -> None:
    assert not is_own_page(origin, host, on_loopback=on_loopback)


def test_configured_origins_are_kept_as_browsers_send_them() -> None:
    text = "https://Console.example:443/, http://[::1]:8080 null\thttp://a:80 http://a:443,"
    assert web_socket_origins(text) == (
        "https://console.example",
        "http://[::1]:8080",
        "null",
        "http://a",
        "http://a:443",
    )
    assert web_socket_origins("*") == ("*",)
    assert web_socket_origins(" ") == web_socket_origins("None") == ()


@pytest.mark.parametrize(
    "word", ["console.example", "ws://a", "https://a/b", "https://*.a", "https://", "https://a:b", "https://u@a"]
)
def test_a_word_that_is_no_origin_is_refused(word: str) -> None:
    with pytest.raises(BadValue, match="not the origin of a page"):
        web_socket_origins(word)
