"""The parameters of a load, and its control by a harness."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from typing import Final, Self

from trouter.tools.options import ConnectionOptions

#: A count that no run reaches.
ENDLESS: Final = 1 << 62
_ANY_WINDOW: Final = 0x7FFFFFFF


#: The key of the line that tells a harness why there is no load.
ERROR: Final = "error"


class LoadError(Exception):
    """The load could not be applied, or the other side ended it; the text says why."""


@dataclass(frozen=True, slots=True)
class Load:
    """The parameters of a load; each role in ``roles`` uses some. 0 for ``count`` or ``seconds`` is without end."""

    host: str = "127.0.0.1"
    port: int = 5672
    #: One address is ``address`` itself; several are ``address.0``, ``address.1`` and so on.
    address: str = "bench"
    addresses: int = 1
    connections: int = 1
    count: int = 0
    seconds: float = 0.0
    #: Messages a second that all connections of a sender begin together; 0 for no limit.
    rate: int = 0
    #: Bytes of a message's body.
    size: int = 100
    #: Unsettled deliveries in flight on each connection of a sender.
    window: int = 1000
    #: Credit that a receiver maintains on each link.
    credit: int = 1000
    presettled: bool = False
    #: One link per connection without an address; each message has its address in ``to``.
    anonymous: bool = False
    #: Time every message.
    latency: bool = False
    #: Hold connections without session and link.
    bare: bool = False
    #: Use up the first credit, and neither settle nor renew it.
    stalled: bool = False
    #: Connections that a fleet of handshakes has under way at a time.
    handshakes_at_once: int = 16
    #: How to connect and log in; None for a login as ANONYMOUS without TLS.
    login: ConnectionOptions | None = None
    #: How long each connection may take.
    timeout_s: float = 10.0
    frame_bytes: int = 16384
    #: The incoming window of a session in frames; 0 derives it from the frame size, as a router does.
    session_frames: int = _ANY_WINDOW

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the load that ``to_json`` has written."""
        given = json.loads(text)
        login = given.pop("login")
        if login is not None:
            login = ConnectionOptions(**{**login, "mechanisms": tuple(login["mechanisms"])})
        return cls(**given, login=login)

    def to_json(self) -> str:
        """Return the load on one line, with the passwords of its login."""
        return json.dumps(asdict(self))

    def addresses_of(self, connection: int) -> tuple[str, ...]:
        """Return the addresses of a connection: each connection has one at least, and each address a connection."""
        if self.addresses == 1:
            return (self.address,)
        if self.addresses < self.connections:
            return (f"{self.address}.{connection % self.addresses}",)
        return tuple(f"{self.address}.{number}" for number in range(connection, self.addresses, self.connections))


class Harness:
    """A harness on standard input and output: it reads our lines; each of its lines starts a phase."""

    def __init__(self, led: bool) -> None:
        self.led = led
        #: Words that came from the harness; ENDLESS without one.
        self.words = 0 if led else ENDLESS
        self.descriptor = sys.stdin.fileno() if led else -1

    def print_line(self, line: str) -> None:
        """Print one line for the harness at once."""
        if self.led:
            print(line, flush=True)  # noqa: T201  # the harness reads it

    def receive(self) -> None:
        """Count the words that came; the end of the input counts as all of them."""
        received = os.read(self.descriptor, 4096)
        self.words += received.count(b"\n") if received else ENDLESS
