"""Strangers: clients that send garbage one after the other, and clients that connect and say nothing.

`python -m bench.strangers PORT COUNT` sends garbage on so many connections, 0 for as many as there is time for until it
is told to stop; a line says that it has begun, another one how many connections the router has closed.
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
from .guessing import Guesser
from .servers import Router, ServerError, sockets_of

GARBAGE: Final = 10_000
HALF_OPEN: Final = 5_000
#: Connections with garbage that are begun in a second, if the router keeps up.
RATE: Final = 2000
#: Sent first, so that nothing of the first time is taken for growth.
WARM_UP: Final = 1000
#: Only a hang takes this long.
HANG_S: Final = 120.0
#: Attributes of a router for which the hostile address is a stranger and the pair's is not, or none is.
GUARDED: Final = "handshakeExempt: 127.0.0.1"
UNGUARDED: Final = 'handshakeExempt: "127.0.0.0/8"'


def garbage() -> tuple[bytes, ...]:
    """What is sent, in turn: other protocols, random octets, and what begins as AMQP or SASL and goes on otherwise."""
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
    """While this lasts garbage comes; afterwards the list has how many connections brought some.

    With ``count`` this ends once so many have.
    """
    return beside("bench.strangers", port, count, ends=bool(count))


@dataclass(frozen=True, slots=True)
class HalfOpen:
    """What connections cost that never say anything: octets at their peak and when all are gone, and how soon that is.

    ``gone_s`` counts from the last connection on.
    """

    peak_bytes: int
    gone_s: float
    left_bytes: int


def half_open(router: Router, count: int) -> HalfOpen:
    """Connect so many clients that say nothing, and wait until the router has closed all of them."""
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
