"""The server of spools: says how far they are, sends ranges of their messages, and moves cursors.

It runs beside the processes that fill the spools, and holds nothing between two calls: it can be killed and started
again at any time. Calls for messages are limited in number and in bytes, so its memory is.
"""

from __future__ import annotations

import errno
import hmac
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any, Final, TypeVar

import msgspec
import pyarrow as pa
from pyarrow import flight

from trouter.client.servers import reason_of
from trouter_pipeline.flight.places import STALLED_S, NoPlace, Places
from trouter_pipeline.flight.protocol import (
    AUTHORIZATION,
    BEARER,
    BLOCK_BYTES,
    CONSUMED,
    KINDS,
    PIECE_BYTES,
    SCHEMA,
    STATE,
    VERSION,
    Grant,
    Request,
    SpoolState,
    Ticket,
    batch_of,
    is_signed,
)
from trouter_pipeline.spool import NoCursor, SpoolError, SpoolReader, SpoolReplaced, spools_in

Asked = TypeVar("Asked", Request, Ticket, Grant)
_MAX_REQUEST_BYTES: Final = 1 << 16
_READER: Final = "token"
_ENDS: Final = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where to listen, the folders to serve by name, and who may read: holders of ``tokens``, anybody without them."""

    host: str
    port: int
    folders: Mapping[str, Path]
    tokens: Sequence[bytes] = ()
    #: The certificate and the key, in PEM; None for no TLS.
    certificate: tuple[bytes, bytes] | None = None
    #: The authorities (PEM) of readers' certificates; None if readers need no certificate.
    client_authorities: bytes | None = None
    #: Calls for messages at a time; a client that comes when there are as many waits and tries again.
    readers: int = 32
    #: Seconds after which a reader that takes no message loses its place to another one.
    stalled_s: float = STALLED_S

    def __repr__(self) -> str:
        return f"Settings({self.host!r}, {self.port}, {list(self.folders)})"


class _Token(flight.ServerMiddleware):  # type: ignore[misc]  # pyarrow has no types
    """Whether a call had a token of ours."""

    def __init__(self, *, is_ours: bool) -> None:
        self.is_ours = is_ours


class _Tokens(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Looks at the token of each call; calls for messages have a signed grant instead."""

    def __init__(self, tokens: Sequence[bytes]) -> None:
        self._tokens = tokens

    def start_call(self, info: Any, headers: Mapping[str, Sequence[str]]) -> _Token:
        given = next(iter(headers.get(AUTHORIZATION, ())), "")
        token = given.removeprefix(BEARER).encode("utf-8", "surrogateescape")
        is_ours = [hmac.compare_digest(token, ours) for ours in self._tokens]
        return _Token(is_ours=any(is_ours) or not self._tokens)


class SpoolServer(flight.FlightServerBase):  # type: ignore[misc]
    """A Flight server of spools; it answers as soon as it is made."""

    def __init__(self, settings: Settings, report: Callable[[str], None]) -> None:
        """Listen; call ``report`` with a line for the operator. OSError for an address or a certificate of no use."""
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        scheme = "grpc" if settings.certificate is None else "grpc+tls"
        self._settings = settings
        self._places = Places(settings.readers, report, stalled_s=settings.stalled_s)
        try:
            super().__init__(
                f"{scheme}://{host}:{settings.port}",
                tls_certificates=None if settings.certificate is None else [settings.certificate],
                verify_client=settings.client_authorities is not None,
                root_certificates=settings.client_authorities,
                middleware={_READER: _Tokens(settings.tokens)},
            )
        except (pa.ArrowException, flight.FlightError) as error:
            raise OSError(f"cannot listen on {host}:{settings.port}: {_obstacle(settings) or error}") from None

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """Answer an action; called by Flight."""
        with _telling():
            if not context.get_middleware(_READER).is_ours:
                raise flight.FlightUnauthenticatedError("the token is not one of this server's")
            request = _parsed(action.body.to_pybytes(), Request)
            _check_version(request.version)
            folders = self._spools(request.name)
            if action.type == CONSUMED:
                for spool in folders:
                    with closing(SpoolReader(spool, request.cursor)) as reader:
                        if reader.uuid in request.upto:
                            reader.consumed(request.upto[reader.uuid])
            elif action.type != STATE:
                raise SpoolError(f"there is no action {action.type[:80]!r} here: {_OTHER_VERSION}")
            return iter([msgspec.json.encode([_state(spool, request.cursor) for spool in folders])])

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Send messages; called by Flight."""
        with _telling():
            asked = _parsed(ticket.ticket, Ticket)
            grant = _parsed(asked.signed.grant, Grant)
            _check_version(grant.version)
            tokens = self._settings.tokens
            if tokens and not any(is_signed(token, asked.signed) for token in tokens):
                raise flight.FlightUnauthenticatedError("the range is not granted by a token of this server's")
            if grant.expires < time():
                raise flight.FlightUnauthenticatedError("the right to read this range has expired: run the query again")
            if not grant.start <= asked.start < grant.end:
                raise SpoolError(f"message {asked.start} is not among those granted, {grant.start} to {grant.end - 1}")
            pieces = self._pieces(self._reader(grant), asked.start, grant.end, context.peer())
            return flight.GeneratorStream(SCHEMA, pieces)

    def _spools(self, name: str) -> list[Path]:
        if name not in self._settings.folders:
            raise SpoolError(f"there is no spool {name[:80]!r} here, but {', '.join(sorted(self._settings.folders))}")
        return spools_in(self._settings.folders[name])

    def _reader(self, grant: Grant) -> SpoolReader:
        for spool in self._spools(grant.name):
            reader = SpoolReader(spool)
            if reader.uuid == grant.uuid:
                return reader
            reader.close()
        raise SpoolReplaced(f"spool {grant.uuid} is not in {grant.name} any more: it was replaced")

    def _pieces(self, reader: SpoolReader, start: int, end: int, peer: str) -> Iterator[pa.RecordBatch]:
        """Yield blocks until the piece is whole."""
        with closing(reader), _telling():
            place = self._places.take(peer)
            try:
                octets = 0
                for block, after in reader.numbered_blocks(start, end, block_bytes=BLOCK_BYTES):
                    yield batch_of(block, after)
                    self._places.keep(place)
                    octets += len(block)
                    if octets >= PIECE_BYTES:
                        return
            finally:
                self._places.leave(place)


_OTHER_VERSION: Final = "install the same version of trouter-pipeline at both ends"


def _parsed(octets: bytes, kind: type[Asked]) -> Asked:
    """Return what a client asks for; SpoolError if it is no question."""
    try:
        if len(octets) > _MAX_REQUEST_BYTES:
            raise ValueError
        asked = msgspec.json.decode(octets, type=kind)
    except (ValueError, RecursionError):  # JSON that is nested too deep
        raise SpoolError(f"this server does not understand the question: {_OTHER_VERSION}") from None
    return asked


def _check_version(version: int) -> None:
    if version != VERSION:
        raise SpoolError(f"this server speaks version {VERSION}, its client {version}: {_OTHER_VERSION}")


def _state(spool: Path, cursor: str) -> SpoolState:
    with closing(SpoolReader(spool, cursor)) as reader:
        position, why = 0, ""
        try:
            position = reader.position
        except NoCursor as error:
            why = str(error)
        return SpoolState(
            uuid=reader.uuid,
            address=reader.address,
            shard=reader.shard,
            first=reader.first,
            durable=reader.durable(),
            position=position,
            no_cursor=why,
        )


@contextmanager
def _telling() -> Iterator[None]:
    """Send an error of a spool with its kind to the client."""
    try:
        yield
    except NoPlace as error:
        raise flight.FlightUnavailableError(str(error)) from None
    except (SpoolError, OSError, ValueError) as error:
        kind = type(error).__name__
        text = reason_of(error) if isinstance(error, OSError) else str(error)
        raise flight.FlightServerError(text, extra_info=(kind if kind in KINDS else "SpoolError").encode()) from None


def _obstacle(settings: Settings) -> str:
    """Return why the address cannot be had, "" if it can: Flight itself says only that there is an error."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
            tried.listen()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return "another process uses the port: end that process, or choose another port"
        return error.strerror or str(error)
    return "" if settings.certificate is None else "the certificate and the key cannot be used, or are no pair (PEM)"


def serve(settings: Settings, ready: Callable[[int], None], report: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; ``ready`` gets the port, and ``report`` lines for the operator; OSError."""
    with _signals() as signals, SpoolServer(settings, report) as server:
        ready(server.port)
        os.read(signals, 1)


@contextmanager
def _signals() -> Iterator[int]:
    """Yield a pipe that has an octet once SIGTERM or SIGINT has come.

    A handler may not set an event: it runs within the wait for it, which holds the event's lock.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    handlers = {number: signal.signal(number, lambda *_: None) for number in _ENDS}
    before = signal.set_wakeup_fd(writing)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)
