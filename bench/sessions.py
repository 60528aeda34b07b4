"""A client that begins as many sessions as AMQP permits, and its effect on another client of the same router.

Figures: memory of the router per session, and the other client's slowest answer while the sessions begin and while
their connection ends.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from trouter.wire.framing import AMQP_HEADER, SASL_HEADER, FrameReader, frame
from trouter.wire.performatives import Begin, Flow, Open, SaslInit, encode_performative

from .servers import Router, sockets_of

SESSIONS: Final = 32_767
READ_BYTES: Final = 1 << 20
#: Seconds in which the router must have removed a connection.
GONE_S: Final = 20.0
BEHIND_S: Final = 0.3
#: Seconds between two requests of the other client.
PAUSE_S: Final = 0.001
_BEGIN: Final = encode_performative(Begin(next_outgoing_id=0, incoming_window=100, outgoing_window=100))
_ECHO: Final = encode_performative(
    Flow(next_incoming_id=0, incoming_window=100, next_outgoing_id=0, outgoing_window=100, echo=True)
)


@dataclass(frozen=True, slots=True)
class Flooded:
    """The cost of one client's sessions: bytes per session; the other client's slowest answers in milliseconds."""

    session_bytes: float
    beginning_ms: float
    ending_ms: float


class Client:
    """An open connection with a session on channel 0."""

    def __init__(self, port: int) -> None:
        self._sock = socket.create_connection(("127.0.0.1", port))
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = FrameReader(1 << 20)
        self._sock.sendall(SASL_HEADER + frame(0, encode_performative(SaslInit("ANONYMOUS", b"")), 1))
        self._take(8, 2)  # mechanisms and outcome
        self._sock.sendall(AMQP_HEADER + frame(0, encode_performative(Open("bench", channel_max=SESSIONS))))
        self._sock.sendall(frame(0, _BEGIN))
        self._take(8, 2)  # open and begin

    def begin(self, count: int) -> None:
        """Begin ``count`` more sessions, and read the router's answers to all of them."""
        self._sock.sendall(b"".join(frame(channel, _BEGIN) for channel in range(1, count + 1)))
        self._take(0, count)

    def ask(self) -> float:
        """Return the milliseconds until the router answers."""
        began_s = time.perf_counter()
        self._sock.sendall(frame(0, _ECHO))
        self._take(0, 1)
        return (time.perf_counter() - began_s) * 1000

    def close(self) -> None:
        self._sock.close()

    def _take(self, header_bytes: int, frames: int) -> None:
        """Read a protocol header of so many bytes, then so many frames."""
        while header_bytes and not self._reader.take_bytes(header_bytes):
            self._reader.add_bytes(self._sock.recv(READ_BYTES))
        while frames:
            if self._reader.next_frame():
                frames -= 1
            else:
                self._reader.add_bytes(self._sock.recv(READ_BYTES))


def allowing(port: int) -> str:
    """Return a listener whose clients may begin so many sessions."""
    return f"listener {{ host: 127.0.0.1, port: {port}, saslMechanisms: ANONYMOUS, maxSessions: {SESSIONS + 1} }}\n"


def measured(router: Router, port: int) -> Flooded:
    """Measure one client's sessions on the listener at ``port``, from their begin to the end of the connection."""
    client = Client(port)
    before_bytes = router.memory("VmRSS")
    with asking(port) as beginning:
        client.begin(SESSIONS - 1)
    grown_bytes = router.memory("VmRSS") - before_bytes
    with asking(port) as ending:
        standing = len(sockets_of(router.process.pid))
        client.close()
        deadline_s = time.monotonic() + GONE_S
        while len(sockets_of(router.process.pid)) >= standing and time.monotonic() < deadline_s:
            time.sleep(PAUSE_S)
        time.sleep(BEHIND_S)
    return Flooded(grown_bytes / SESSIONS, max(beginning), max(ending))


@contextmanager
def asking(port: int) -> Iterator[list[float]]:
    """Run a client that sends requests for the length of the block; the list has the milliseconds of each answer."""
    neighbour, answers, over = Client(port), list[float](), threading.Event()

    def ask() -> None:
        while not over.wait(PAUSE_S):
            answers.append(neighbour.ask())

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield answers
    finally:
        over.set()
        thread.join()
        neighbour.close()
