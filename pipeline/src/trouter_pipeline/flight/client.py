"""Spools of a server, as `spool.SpoolReader` has those of a folder.

Messages come in pieces, each whole or not at all, and a piece that was cut short is asked for again: a server that is
killed and started again costs time, and neither loses nor repeats a message.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, Self, TypeVar

import msgspec
from pyarrow import ArrowException, flight

from trouter_pipeline.flight.access import Access, address_of
from trouter_pipeline.flight.protocol import (
    AUTHORIZATION,
    BEARER,
    CONSUMED,
    GRANTED_S,
    KINDS,
    STATE,
    VERSION,
    Grant,
    Request,
    SignedGrant,
    SpoolState,
    Ticket,
    signed,
)
from trouter_pipeline.spool.cursors import DEFAULT
from trouter_pipeline.spool.errors import NoCursor, SpoolError, SpoolReplaced
from trouter_pipeline.spool.reader import beginning

#: Seconds for which an answer about the state of spools is new enough.
_FRESH_S: Final = 0.1
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
#: How long gRPC waits between two attempts to connect; by its own choice up to two minutes.
_RECONNECTING: Final = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1000)]
#: Errors of a server that is away, overloaded, or killed in the middle of an answer.
_PASSING: Final = (flight.FlightUnavailableError, flight.FlightTimedOutError, flight.FlightCancelledError)
Answer = TypeVar("Answer")


class ServerAway(SpoolError):
    """The server of a spool did not answer in time."""


class NotAdmitted(SpoolError):
    """The server of a spool does not take the token, or the right to a range."""


class _Block(NamedTuple):
    """Whole frames, and the sequence after them."""

    frames: bytes
    end: int


class Server:
    """The server of an address ``grpc[+tls]://HOST:PORT/NAME``, and the spools under the name."""

    def __init__(self, url: str, access: Access, *, cursor: str = DEFAULT) -> None:
        """Connect when first asked; ValueError for an impossible address, NotAdmitted for files that are missing."""
        host, self.name = address_of(url)
        self.url = url
        self.cursor = cursor
        self._patience_s = access.patience_s
        self._token = access.token
        self._client = flight.connect(
            host, tls_root_certs=access.authorities, generic_options=_RECONNECTING, **_identity(url, access)
        )
        self._states: dict[str, SpoolState] = {}
        self._asked_at = 0.0

    def states(self, *, fresh: bool = True) -> dict[str, SpoolState]:
        """Return the state of each spool by uuid, a moment old unless ``fresh``; SpoolError."""
        if fresh or time.monotonic() - self._asked_at > _FRESH_S:
            self._act(STATE, {})
        return self._states

    def consumed(self, upto: dict[str, int]) -> None:
        """Move the cursor of each spool; SpoolError."""
        self._act(CONSUMED, upto)

    def _act(self, name: str, upto: dict[str, int]) -> None:
        request = msgspec.json.encode(Request(VERSION, self.name, self.cursor, upto))
        headers = [(AUTHORIZATION.encode(), BEARER.encode() + self._token)] if self._token else []

        def ask() -> bytes:
            options = flight.FlightCallOptions(timeout=self._patience_s, headers=headers)
            return b"".join(result.body.to_pybytes() for result in self._client.do_action((name, request), options))

        try:
            states = msgspec.json.decode(self._patiently(ask), type=list[SpoolState])
        except ValueError:
            raise SpoolError(f"{self.url}: this is no server of spools, or one of another version") from None
        self._states = {state.uuid: state for state in states}
        self._asked_at = time.monotonic()

    def granted(self, uuid: str, start: int, end: int) -> SignedGrant:
        """Return the right to read a range, for workers."""
        return signed(self._token, Grant(VERSION, self.name, uuid, start, end, int(time.time()) + GRANTED_S))

    def blocks(self, grant: SignedGrant, start: int, end: int) -> Iterator[bytes]:
        """Yield the frames of messages ``start`` to ``end`` - 1 of a grant, while the next piece comes; SpoolError."""
        ahead = ThreadPoolExecutor(max_workers=1)
        try:
            coming = ahead.submit(self._piece, grant, start)
            while start < end:
                piece = coming.result()
                start = piece[-1].end
                if start < end:
                    coming = ahead.submit(self._piece, grant, start)
                yield from (block.frames for block in piece)
        finally:
            ahead.shutdown(wait=False, cancel_futures=True)

    def _piece(self, grant: SignedGrant, start: int) -> list[_Block]:
        """Return the blocks from a message on, at least one; SpoolError."""
        ticket = flight.Ticket(msgspec.json.encode(Ticket(grant, start)))

        def ask() -> list[_Block]:
            chunks = self._client.do_get(ticket, flight.FlightCallOptions(timeout=self._patience_s))
            return [_Block(chunk.data[0][0].as_py(), chunk.data[1][0].as_py()) for chunk in chunks]

        piece = self._patiently(ask)
        if not piece or piece[-1].end <= start:
            raise SpoolError(f"{self.url} sent nothing where message {start} should follow")
        return piece

    def _patiently(self, ask: Callable[[], Answer]) -> Answer:
        """Ask until there is an answer, for the whole of our patience; SpoolError."""
        deadline = time.monotonic() + self._patience_s
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return ask()
            except flight.FlightUnauthenticatedError as error:
                raise NotAdmitted(f"{self.url}: {_told(error)}: see token and tokenFile") from None
            except _PASSING as error:
                if time.monotonic() + pause_s >= deadline:
                    raise ServerAway(self._away(error)) from None
            except (flight.FlightServerError, ArrowException) as error:
                kind = bytes(getattr(error, "extra_info", b"") or b"").decode("ascii", "replace")
                raise KINDS.get(kind, SpoolError)(f"{self.url}: {_told(error)}") from None
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _away(self, error: Exception) -> str:
        return (
            f"{self.url} does not answer ({_told(error)}), tried for {self._patience_s:g} s: is "
            "`trouter pipeline serve` running there, and does TLS fit (grpc+tls://, tlsTrustFile, tlsCertificateFile)? "
            "A query that is started again goes on where it was; with connectTimeoutS it waits longer"
        )

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _identity(url: str, access: Access) -> dict[str, bytes]:
    """Return the client's certificate and key as arguments of ``flight.connect``; NotAdmitted."""
    if access.certificate is None:
        return {}
    try:
        chain, key = (path.read_bytes() for path in access.certificate)
    except OSError as error:
        raise NotAdmitted(
            f"{url}: {error.filename}: {error.strerror}: every machine that reads needs the client's certificate and "
            "key at this place (tlsCertificateFile, tlsKeyFile)"
        ) from None
    return {"cert_chain": chain, "private_key": key}


def _told(error: BaseException) -> str:
    """Return the text of an error without what gRPC adds to it."""
    return str(error).partition(". gRPC client debug context")[0].partition(". Detail:")[0]


class Granted(NamedTuple):
    """What a worker needs to read a range: the right to, and what the rows say of their spool."""

    signed: SignedGrant
    shard: int
    address: str


class ServedSpool:
    """One spool of a server, for the consumer of the server's cursor."""

    def __init__(self, server: Server, state: SpoolState) -> None:
        self.folder = server.url
        self.cursor = server.cursor
        self.uuid = state.uuid
        self.address = state.address
        self.shard = state.shard
        self._server = server

    def _state(self, *, fresh: bool) -> SpoolState:
        state = self._server.states(fresh=fresh).get(self.uuid)
        if state is None:
            raise SpoolReplaced(f"spool {self.uuid} is not in {self.folder} any more: it was replaced")
        return state

    @property
    def first(self) -> int:
        """See `SpoolReader.first`; SpoolError, here and below."""
        return self._state(fresh=True).first

    @property
    def position(self) -> int:
        """See `SpoolReader.position`."""
        state = self._state(fresh=True)
        if state.no_cursor:
            raise NoCursor(state.no_cursor)
        return state.position

    @property
    def begin(self) -> int:
        """See `SpoolReader.begin`."""
        return beginning(self.cursor, self.position, self.first)

    def durable(self) -> int:
        """Return the first sequence that is not durable yet, as it was a moment ago."""
        return self._state(fresh=False).durable

    def granted(self, start: int, end: int) -> Granted:
        """Return what a worker needs to read a range."""
        return Granted(self._server.granted(self.uuid, start, end), self.shard, self.address)

    def consumed(self, upto: int) -> None:
        """See `SpoolReader.consumed`."""
        self._server.consumed({self.uuid: upto})

    def close(self) -> None:
        self._server.close()


def open_served(url: str, access: Access, cursor: str) -> list[ServedSpool]:
    """Return the spools of an address, each with a connection of its own; ValueError, SpoolError."""
    with Server(url, access, cursor=cursor) as server:
        states = server.states().values()
    return [ServedSpool(Server(url, access, cursor=cursor), state) for state in states]


def read_granted(url: str, granted: Granted, start: int, end: int, access: Access) -> Iterator[bytes]:
    """Yield the blocks of a range, as a worker; SpoolError."""
    with Server(url, access) as server:
        yield from server.blocks(granted.signed, start, end)
