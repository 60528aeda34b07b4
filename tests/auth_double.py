"""An authentication service that follows a test's script, over real TCP or TLS; a script may hang, lie or disconnect.

A script is a function that the service calls with the wire of each connection, in a thread of its own. When it returns,
the connection is closed; an exception other than the end of the connection fails the test that uses the double.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from tests.routers import DEADLINE_S
from trouter.wire.framing import AMQP_HEADER, SASL_HEADER, frame
from trouter.wire.performatives import (
    Open,
    Performative,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    decode_performative,
    encode_performative,
)
from trouter.wire.types import Array, Symbol

P = TypeVar("P", bound=Performative)

IDENTITY: Final = Symbol("authenticated-identity")
AUTHZ: Final = Symbol("address-authz")
ALICE: Final[Mapping[str, Any]] = {"sub": "alice"}


def words(*given: str) -> Array:
    """Return rights as an array of strings, as authentication services encode them."""
    return Array("string", given)


class Gone(Exception):
    """The router closed the connection."""


class Wire:
    """The service's end of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._input = b""

    def header(self, header: bytes) -> None:
        """Receive the router's header, check that it is ``header``, and send the same."""
        self.hear_header(header)
        self._sock.sendall(header)

    def hear_header(self, header: bytes) -> None:
        """Receive the router's header, and check that it is ``header``."""
        assert self._read(8) == header

    def say(self, performative: Performative, frame_type: int = 1) -> None:
        """Send a frame, by default a SASL frame."""
        self.raw(frame(0, encode_performative(performative), frame_type))

    def raw(self, octets: bytes) -> None:
        self._sock.sendall(octets)

    def expect(self, kind: type[P]) -> P:
        """Return the performative of the next frame; AssertionError if it is not of this kind."""
        (size,) = struct.unpack(">I", self._read(4))
        octets = self._read(size - 4)
        performative = decode_performative(octets, octets[0] * 4 - 4, len(octets))[0]
        assert isinstance(performative, kind), performative
        return performative

    def until_gone(self) -> None:
        """Send nothing, and wait until the router closes the connection."""
        with suppress(Gone):
            while True:
                self._read(1)

    def offer(self, *mechanisms: str) -> SaslInit:
        """Send the mechanisms; return the client's sasl-init."""
        self.header(SASL_HEADER)
        self.say(SaslMechanisms(mechanisms))
        return self.expect(SaslInit)

    def let_in(
        self, properties: Mapping[Any, Any] | None, additional: bytes | None = None, container_id: str = "service"
    ) -> Open:
        """Accept the login, and send an open with these properties; return the router's open.

        Return only when the router has closed the connection.
        """
        self.say(SaslOutcome(0, additional))
        self.header(AMQP_HEADER)
        opened = self.expect(Open)
        self.say(Open(container_id=container_id, properties=None if properties is None else dict(properties)), 0)
        self.until_gone()
        return opened

    def _read(self, size: int) -> bytes:
        while len(self._input) < size:
            try:
                data = self._sock.recv(65536)
            except OSError:
                data = b""
            if not data:
                raise Gone
            self._input += data
        taken, self._input = self._input[:size], self._input[size:]
        return taken


Script = Callable[[Wire], None]


class Double:
    """The service: ``port`` is the port that it listens on, ``seen`` a list for its scripts."""

    def __init__(self, script: Script, tls: ssl.SSLContext | None = None) -> None:
        self.script = script
        self.seen: list[Any] = []
        self.accepted = 0
        self.failures: list[BaseException] = []
        self._tls = tls
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listening.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """Close all sockets, and raise the exception of a script that failed."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for sock in self._sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(DEADLINE_S)
        for failure in self.failures:
            raise failure

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listening.accept()
            except OSError:
                return
            self.accepted += 1
            self._sockets.append(sock)
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_side=True)
                self._sockets.append(sock)
            self.script(Wire(sock))
        except (Gone, OSError):
            pass
        except BaseException as failure:  # noqa: BLE001 - raised by close
            self.failures.append(failure)
        finally:
            sock.close()


@contextmanager
def service(script: Script, tls: ssl.SSLContext | None = None) -> Iterator[Double]:
    """Run a double for as long as the block lasts."""
    double = Double(script, tls)
    try:
        yield double
    finally:
        double.close()


# Scripts


def plain(properties: Mapping[Any, Any] | None, *mechanisms: str) -> Script:
    """Return a script that accepts every login, with these properties."""

    def script(wire: Wire) -> None:
        wire.offer(*(mechanisms or ("PLAIN",)))
        wire.let_in(properties)

    return script


def says_no(code: int) -> Script:
    def script(wire: Wire) -> None:
        wire.offer("PLAIN")
        wire.say(SaslOutcome(code))
        wire.until_gone()

    return script


def stops_before(stage: str, *, dies: bool = False, stopped: threading.Event | None = None) -> Script:
    """Return a script that proceeds up to ``stage``, sets ``stopped``, and then hangs or closes the connection."""

    def script(wire: Wire) -> None:
        go_along(wire)
        if stopped is not None:
            stopped.set()
        if not dies:
            wire.until_gone()

    def go_along(wire: Wire) -> None:
        if stage == "header":
            return
        wire.header(SASL_HEADER)
        if stage == "mechanisms":
            return
        wire.say(SaslMechanisms(("PLAIN",)))
        wire.expect(SaslInit)
        if stage == "outcome":
            return
        if stage == "response":
            wire.say(SaslChallenge(b"?"))
            wire.expect(SaslResponse)
            return
        wire.say(SaslOutcome(0))
        if stage == "amqp header":
            wire.hear_header(AMQP_HEADER)
            return
        wire.header(AMQP_HEADER)
        wire.expect(Open)
        assert stage == "open"

    return script
