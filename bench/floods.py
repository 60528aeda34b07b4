"""What connections flood a router with, and the listener that each flood needs."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trouter.wire.framing import AMQP_HEADER, SASL_HEADER, frame
from trouter.wire.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Performative,
    SaslInit,
    Source,
    Target,
    encode_performative,
)
from trouter_plugins.users_file import put_user

from . import greeting

#: The address of those who flood, which is another one than their neighbour's.
HOST: Final = "127.0.0.2"
#: No limit of connections before their open applies to this machine, or to the clients that a PROXY header names.
EXEMPT: Final = 'handshakeExempt: "127.0.0.0/8, 192.0.2.0/24"'
#: Frames that are sent again and again, and the links that attach and detach.
REPEATED: Final = 2000
LINKS: Final = 64
#: A mask that leaves the octets of a WebSocket's frame as they are.
_MASK: Final = bytes(4)


@dataclass(frozen=True, slots=True)
class Flood:
    """What each connection says once, and then without end.

    If it ``repeats`` nothing, the router ends the connection, and another one takes its place.
    """

    says: bytes
    repeats: bytes = b""
    #: The attributes of a listener of its own; empty for the router's first one.
    listener: str = ""
    #: It goes to the listener of HTTP.
    is_http: bool = False

    @property
    def unit(self) -> str:
        """The unit of its rate."""
        return "MB/s" if self.repeats else "connections/s"


def octets(*performatives: Performative, channel: int = 0) -> bytes:
    """Return frames with ``performatives``."""
    return b"".join(frame(channel, encode_performative(each)) for each in performatives)


def login(mechanism: str = "ANONYMOUS", response: bytes = b"") -> bytes:
    """Return what a client says until it is logged in."""
    return SASL_HEADER + frame(0, encode_performative(SaslInit(mechanism, response)), 1)


def _flow(credit: int | None = None, *, drain: bool = False, echo: bool = False) -> Flow:
    handle, count = (None, None) if credit is None else (0, 0)
    return Flow(
        next_incoming_id=0,
        incoming_window=100,
        next_outgoing_id=0,
        outgoing_window=100,
        handle=handle,
        delivery_count=count,
        link_credit=credit,
        drain=drain,
        echo=echo,
    )


def _attach(number: int, address: str) -> bytes:
    return octets(Attach(f"l{number}", number, True, source=Source(address), target=Target()), Detach(number, True))


def _request(path: str, *more: str) -> bytes:
    return "\r\n".join((f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *more, "", "")).encode()


def _message(opcode: int, data: bytes = b"") -> bytes:
    """Return a frame of a WebSocket with less than 126 octets."""
    return bytes((0x80 | opcode, 0x80 | len(data))) + _MASK + data


def _hello() -> bytes:
    """Return the beginning of a handshake of TLS, and what ends it."""
    sent = ssl.MemoryBIO()
    context = ssl.create_default_context()
    try:
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost").do_handshake()
    except ssl.SSLWantReadError:
        return sent.read() + b"\x17\x03\x03\x00\x20" + bytes(32)
    raise AssertionError


_BEGIN: Final = Begin(next_outgoing_id=0, incoming_window=100, outgoing_window=100)
_OPENED: Final = login() + AMQP_HEADER + octets(Open("flood"), _BEGIN)
_LEAVING: Final = login() + AMQP_HEADER + octets(Open("flood"), Close())
_RECEIVING: Final = _OPENED + octets(Attach("r", 0, True, source=Source("flood"), target=Target()))
_PROXIED: Final = b"PROXY TCP4 192.0.2.9 127.0.0.1 4000 5672\r\n"
_UPGRADE: Final = _request(
    "/", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol: amqp",
)  # fmt: skip
_WEBSOCKET: Final = _UPGRADE + b"".join(_message(2, _OPENED[at : at + 100]) for at in range(0, len(_OPENED), 100))
_TLS: Final = "sslProfile: bench, requireSsl: yes"
_OPEN_TO_ALL: Final = "saslMechanisms: ANONYMOUS, authenticatePeer: no"
_CONFINED: Final = f"{_OPEN_TO_ALL}, policyVhost: confined"
_BALANCED: Final = f"{_OPEN_TO_ALL}, proxyProtocolHosts: {HOST}"
_LOGGED_IN: Final = "saslMechanisms: SCRAM-SHA-256 PLAIN, authenticatePeer: yes, allowInsecurePlain: yes"

NOTHING: Final = Flood(b"")
FLOODS: Final[dict[str, Flood]] = {
    "attaches": Flood(_OPENED, b"".join(_attach(n, f"flood{n}") for n in range(LINKS)) * (REPEATED // LINKS)),
    "refused attaches": Flood(
        _OPENED,
        b"".join(_attach(n, f"other{n}") for n in range(LINKS)) * (REPEATED // LINKS),
        _CONFINED,
    ),
    "sessions": Flood(_OPENED, octets(_BEGIN, End(), channel=1) * REPEATED),
    "echoes": Flood(_OPENED, octets(_flow(echo=True)) * REPEATED),
    "flows": Flood(_RECEIVING, octets(_flow(1), _flow(2)) * REPEATED),
    "drains": Flood(_RECEIVING, octets(_flow(100, drain=True)) * REPEATED),
    "dispositions": Flood(_OPENED, octets(Disposition(role=True, first=0, last=2_000_000_000)) * REPEATED),
    "empty frames": Flood(_OPENED, frame(0, b"") * REPEATED),
    "logins": Flood(_LEAVING),
    "refused logins": Flood(login("PLAIN", b"\0alice\0wrong"), b"", _LOGGED_IN),
    "PROXY headers": Flood(_PROXIED + _LEAVING, b"", _BALANCED),
    "echoes behind PROXY headers": Flood(_PROXIED + _OPENED, octets(_flow(echo=True)) * REPEATED, _BALANCED),
    "hellos of TLS": Flood(_hello(), b"", _TLS),
    "scrapes": Flood(b"", _request("/metrics") * REPEATED, is_http=True),
    "pages": Flood(_request("/", "Connection: close"), is_http=True),
    "pings of WebSockets": Flood(_WEBSOCKET, _message(9) * REPEATED, is_http=True),
    "small frames of WebSockets": Flood(
        _WEBSOCKET, b"".join(_message(2, bytes((each,))) for each in frame(0, b"")) * REPEATED, is_http=True
    ),
}


#: Floods that programs of their own make, by the unit of their rates.
HANDSHAKES: Final = "TLS handshakes"
QUERIES: Final = "queries of all links"
OTHER_FLOODS: Final = {HANDSHAKES: "a second", QUERIES: "a second"}
#: The user who asks, and its password.
USER: Final = ("alice", "nobody guesses this")
_CONFINING: Final = """
policy { enableVhostPolicy: yes }
vhost { hostname: $default, allowUnknownUser: yes, groups: { $default: { remoteHosts: *, sources: *, targets: * } } }
vhost { hostname: confined, allowUnknownUser: yes, groups: { $default: { remoteHosts: *, sources: a, targets: a } } }
"""


def own_listener(name: str, folder: Path, port: int) -> tuple[str, str]:
    """Return what the router's configuration has for a flood: attributes of the router, and sections."""
    folder.mkdir(parents=True)
    listener = _TLS if name == HANDSHAKES else _LOGGED_IN if name == QUERIES else FLOODS.get(name, NOTHING).listener
    if listener == _TLS:
        return "", greeting.secured(folder, port)
    own = more = ""
    if listener == _LOGGED_IN:
        put_user(folder / "users", USER[0], USER[1].encode())
        own = f"usersFile: {folder / 'users'}"
    if listener == _CONFINED:
        more = _CONFINING
    if listener:
        more += f"listener {{ host: 127.0.0.1, port: {port}, {listener} }}\n"
    return own, more
