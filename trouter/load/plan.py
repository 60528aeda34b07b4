"""What a load is, and who leads it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Final

#: A count that no run reaches.
ENDLESS: Final = 1 << 62
_ANY_WINDOW: Final = 0x7FFFFFFF


class LoadError(Exception):
    """The load could not be applied, or the other side ended it; the text says how."""


@dataclass(frozen=True, slots=True)
class Load:
    """What to do; ``roles`` says who looks at what. 0 for ``count`` or ``seconds`` is without end."""

    host: str = "127.0.0.1"
    port: int = 5672
    #: One address is ``address`` itself; several are ``address.0``, ``address.1`` and so on.
    address: str = "bench"
    addresses: int = 1
    connections: int = 1
    count: int = 0
    seconds: float = 0.0
    #: Messages a second that a sender begins, on all its connections together; 0 is as many as it can.
    rate: int = 0
    #: A message's body in octets.
    size: int = 100
    #: Unsettled deliveries in flight on each connection of a sender.
    window: int = 1000
    #: Credit that a receiver keeps up on each link.
    credit: int = 1000
    presettled: bool = False
    #: One link per connection, each message with its address in ``to``.
    anonymous: bool = False
    #: Time every message.
    latency: bool = False
    #: Hold connections without session and link.
    bare: bool = False
    #: Take what the first credit allows, and neither settle nor renew it.
    stalled: bool = False
    user: str = ""
    password: str = ""
    frame_bytes: int = 16384
    #: The incoming window of a session in frames; 0 derives it from the frame size, as a router does.
    session_frames: int = _ANY_WINDOW

    def addresses_of(self, connection: int) -> tuple[str, ...]:
        """Return the addresses of a connection; no address is without a connection, and no connection without one."""
        if self.addresses == 1:
            return (self.address,)
        if self.addresses < self.connections:
            return (f"{self.address}.{connection % self.addresses}",)
        return tuple(f"{self.address}.{number}" for number in range(connection, self.addresses, self.connections))


class Control:
    """A harness on standard input and output: it reads our lines, and each line of its own is one word to go on."""

    def __init__(self, led: bool) -> None:
        self.led = led
        #: How many words came from the harness; ENDLESS if there is no harness to wait for.
        self.words = 0 if led else ENDLESS
        self.descriptor = sys.stdin.fileno() if led else -1

    def say(self, line: str) -> None:
        """Print one line, at once."""
        if self.led:
            print(line, flush=True)  # noqa: T201  # the harness reads it

    def hear(self) -> None:
        """Count the words that came; the end of the input stands for all that could follow."""
        heard = os.read(self.descriptor, 4096)
        self.words += heard.count(b"\n") if heard else ENDLESS
