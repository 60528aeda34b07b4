"""Clients that send garbage one after the other, and clients that connect and send nothing.

`python -m bench.strangers PORT COUNT` sends garbage on COUNT connections, or, with 0, until SIGTERM; it prints a line
when it has begun, and at its end the count of connections that the router has closed.
"""

from __future__ import annotations

import random
import socket
import sys
import time
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Final

from trouter.wire.framing import AMQP_HEADER, SASL_HEADER, frame

from .beside import beside
from .guessing import LIMITED_BY_HOST, Guesser
from .servers import Router, ServerError, sockets_of

GARBAGE: Final = 10_000
HALF_OPEN: Final = 5_000
#: Connections with garbage that are begun per second, if the router keeps up.
RATE: Final = 2000
#: Connections before the measurement, so that first use does not count as growth.
WARM_UP: Final = 1000
#: Seconds that only a hang takes.
HANG_S: Final = 120.0
#: Attributes of a router that limit the hostile address as `secureDefaults` does, and exempt the pair's.
GUARDED: Final = LIMITED_BY_HOST
UNGUARDED: Final = 'handshakeExempt: "127.0.0.0/8"'


def garbage() -> tuple[bytes, ...]:
    """Return the garbage to send in turn: other protocols, random bytes, and invalid bytes after a valid header."""
    noise = random.Random(1).randbytes
    return (
        b"GET / HTTP/1.1\r\nHost: router\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + noise(200),
        noise(4000),
        AMQP_HEADER + noise(1000),
        AMQP_HEADER + b"\xff\xff\xff\xff" + noise(100),
        AMQP_HEADER + frame(0, b"\x00\x53\x10" + noise(100)),
        SASL_HEADER + noise(1000),
        SASL_HEADER + frame(0, b"\x00\x53\x41" + noise(100), 1),
    )


def garbage_at(port: int, count: int = 0) -> AbstractContextManager[list[float]]:
    """Send garbage for the length of the block; afterwards the list has the count of connections.

    With ``count`` the block ends after so many connections.
    """
    return beside("bench.strangers", port, count, ends=bool(count))


@dataclass(frozen=True, slots=True)
class HalfOpen:
    """The cost of silent connections: bytes at their peak and after all have ended, and the seconds until then.

    ``gone_s`` counts from the last connection on.
    """

    peak_bytes: int
    gone_s: float
    left_bytes: int


def half_open(router: Router, count: int) -> HalfOpen:
    """Connect ``count`` clients that send nothing, and wait until the router has closed all of them."""
    own = len(sockets_of(router.process.pid))
    before = router.memory("VmRSS")
    router.forget_peak()
    with ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", router.port), HANG_S)) for _ in range(count)
        ]
        came_s = time.monotonic()
        while (present := len(sockets_of(router.process.pid)) - own) < count:
            if time.monotonic() > came_s + HANG_S:
                raise ServerError(f"only {present} of {count} half-open connections stand")
        peak = router.memory("VmHWM") - before
        for client in clients:
            if client.recv(1):
                raise ServerError("the router said something to a client that said nothing")
        gone_s = time.monotonic() - came_s
    return HalfOpen(peak, gone_s, router.memory("VmRSS") - before)


if __name__ == "__main__":
    guesser = Guesser(int(sys.argv[1]), RATE, garbage(), int(sys.argv[2]))
    guesser.run()
    print(guesser.failures, flush=True)
