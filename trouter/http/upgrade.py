"""The opening handshake of a WebSocket (RFC 6455, 4.2), and the origins that may begin one."""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import h11
from wsproto.utilities import generate_accept_token

from .names import HOST_AND_PORT, is_loopback_name
from .responses import Response, refusal

VERSION: Final = b"13"
#: AMQP over WebSockets by its registered name, by that of older clients and the console, and by that of Azure's SDKs,
#: which offer no other.
SUBPROTOCOLS: Final = ("amqp", "binary", "AMQPWSB10")
DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class UpgradeRefused(Exception):
    """The request does not become a WebSocket."""

    def __init__(self, response: Response, why: str) -> None:
        super().__init__(why)
        self.response = response


@dataclass(frozen=True, slots=True)
class Handshake:
    """The request of a client to switch to WebSockets."""

    method: bytes
    http_version: bytes
    headers: dict[str, str]

    def accept(self, origins: tuple[str, ...], *, on_loopback: bool) -> tuple[h11.InformationalResponse, str]:
        """Return the response that switches, and the subprotocol; UpgradeRefused if it is refused."""
        key = self._key()
        self._judge_origin(origins, on_loopback=on_loopback)
        subprotocol = self._subprotocol()
        headers = [
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", generate_accept_token(key).decode("ascii")),
            *((("Sec-WebSocket-Protocol", subprotocol),) if subprotocol else ()),
        ]
        return h11.InformationalResponse(status_code=101, headers=headers, reason="Switching Protocols"), subprotocol

    def _key(self) -> bytes:
        if self.method != b"GET" or self.http_version != b"1.1" or "upgrade" not in self._words("connection"):
            raise UpgradeRefused(
                refusal(400, why="this is not a WebSocket handshake"), "it is not GET with Connection: Upgrade"
            )
        if self.headers.get("sec-websocket-version") != VERSION.decode("ascii"):
            answer = refusal(426, ("Sec-WebSocket-Version", "13"), ("Upgrade", "websocket"), ("Connection", "Upgrade"))
            raise UpgradeRefused(answer, "the version is not 13")
        key = self.headers.get("sec-websocket-key", "")
        try:
            nonce = b64decode(key.encode("ascii"), validate=True)
        except (binascii.Error, UnicodeEncodeError):
            nonce = b""
        if len(nonce) != 16:
            raise UpgradeRefused(
                refusal(400, why="Sec-WebSocket-Key is not valid"), "its Sec-WebSocket-Key is not valid"
            )
        return key.encode("ascii")

    def _judge_origin(self, origins: tuple[str, ...], *, on_loopback: bool) -> None:
        """Check a browser's Origin (UpgradeRefused); programs send none, and no web page can make one connect."""
        origin = self.headers.get("origin")
        if origin is None or origin.lower() in origins or "*" in origins:
            return
        if not is_own_page(origin.lower(), self.headers.get("host", "").lower(), on_loopback=on_loopback):
            answer = refusal(403, why="pages from this origin may not open WebSockets here")
            raise UpgradeRefused(
                answer, f"its origin {origin[:256]} is neither this listener's nor among webSocketOrigins"
            )

    def _subprotocol(self) -> str:
        offered = self._words("sec-websocket-protocol")
        chosen = next((word for word in offered if word in SUBPROTOCOLS), "")
        if offered and not chosen:
            why = f"the subprotocol is one of {', '.join(SUBPROTOCOLS)}"
            raise UpgradeRefused(refusal(400, why=why), "the subprotocol is unknown")
        return chosen

    def _words(self, name: str) -> list[str]:
        words = [word.strip() for word in self.headers.get(name, "").split(",")]
        return [word.lower() if name == "connection" else word for word in words if word]


def handshake_in(request: h11.Request) -> Handshake | None:
    """Return the handshake if ``request`` offers to switch to WebSockets, else None; a repeated header is one list."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in request.headers:
        name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    offers = [word.strip().lower() for word in headers.get("upgrade", "").split(",")]
    return Handshake(request.method, request.http_version, headers) if "websocket" in offers else None


def is_own_page(origin: str, host: str, *, on_loopback: bool) -> bool:
    """Return whether a page of ``origin`` came from the request's own host and port.

    On a connection to a loopback address only names of this machine count: an attacker's name can be made to lead here.
    """
    try:
        page = urlsplit(origin)
        default = DEFAULT_PORTS[page.scheme]
        page_port = page.port or default
    except (KeyError, ValueError):
        return False
    here = HOST_AND_PORT.fullmatch(host)
    if here is None or page.hostname is None or page.path or page.query or page.fragment or page.username is not None:
        return False
    name = here[1].strip("[]")
    if (page.hostname, page_port) != (name, int(here[2] or default)):
        return False
    return not on_loopback or is_loopback_name(name)
