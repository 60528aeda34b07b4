"""The server of a URL: ``amqp://user:password@host:port`` parsed. No error text contains the password."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from trouter.wire.constants import PORT, SECURE_PORT

_PORTS: Final = {"amqp": PORT, "amqps": SECURE_PORT}


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server, with the user and password if the URL has them."""

    host: str
    port: int
    secure: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)


def parse_url(url: str) -> ServerAddress:
    """Return ``[amqp[s]://][user[:password]@]host[:port]``, user and password percent-encoded; ValueError."""
    parts = urlsplit(url if "://" in url else f"amqp://{url}")
    if parts.scheme not in _PORTS:
        raise ValueError(f"the scheme is {parts.scheme!r}, neither amqp nor amqps")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("the URL may have no path, query or fragment")
    try:
        port = parts.port
    except ValueError:
        raise ValueError("the port of the URL is not a number from 0 to 65535") from None
    if not parts.hostname:
        raise ValueError("the URL names no host")
    return ServerAddress(
        host=parts.hostname,
        port=_PORTS[parts.scheme] if port is None else port,
        secure=parts.scheme == "amqps",
        user=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
    )
