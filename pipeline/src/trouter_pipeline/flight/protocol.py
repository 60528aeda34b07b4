"""What the server of spools and its clients say to each other.

A client with a token asks for the state of the spools under a name, and moves its cursor there: these are actions of
Flight, with JSON. Workers have no token. The client that plans their work signs a grant for a range of one spool, and
each call for messages within the range carries it.
"""

from __future__ import annotations

import hmac
import struct
from typing import Final

import msgspec
import pyarrow as pa

from trouter_pipeline.spool.errors import NoCursor, SegmentMissing, SpoolBusy, SpoolError, SpoolGap, SpoolReplaced

VERSION: Final = 1
#: The actions.
STATE: Final = "trouter.spool.state"
CONSUMED: Final = "trouter.spool.consumed"
#: The header with the token, of Flight's own bearer authentication.
AUTHORIZATION: Final = "authorization"
BEARER: Final = "Bearer "
#: Messages come in blocks of whole frames, each with the sequence after it.
SCHEMA: Final = pa.schema([("frames", pa.binary()), ("next", pa.int64())])
_OFFSETS: Final = struct.Struct("=ii")
_SEQUENCE: Final = struct.Struct("=q")
BLOCK_BYTES: Final = 1 << 18
#: A call for messages ends after so many bytes; the client makes another one for those behind them.
PIECE_BYTES: Final = 16 << 20
#: Seconds for which a worker may use a grant.
GRANTED_S: Final = 24 * 3600

#: Errors that keep their type on the way, by the name of their kind; others are the base of them all.
KINDS: Final[dict[str, type[SpoolError]]] = {
    kind.__name__: kind for kind in (NoCursor, SegmentMissing, SpoolBusy, SpoolGap, SpoolReplaced)
}


class Request(msgspec.Struct, frozen=True):
    """An action on the spools under a name: ``upto`` is where to move the cursor of each."""

    version: int
    name: str
    cursor: str
    upto: dict[str, int] = {}


class SpoolState(msgspec.Struct, frozen=True):
    """A spool as its server sees it; ``position`` is that of the cursor, or ``no_cursor`` says why there is none."""

    uuid: str
    address: str
    shard: int
    first: int
    durable: int
    position: int = 0
    no_cursor: str = ""


class Grant(msgspec.Struct, frozen=True):
    """The right to read messages ``start`` to ``end`` - 1 of a spool, until ``expires`` (seconds since 1970)."""

    version: int
    name: str
    uuid: str
    start: int
    end: int
    expires: int


class SignedGrant(msgspec.Struct, frozen=True):
    """A grant as JSON, with its signature."""

    grant: bytes
    signature: bytes


class Ticket(msgspec.Struct, frozen=True):
    """A call for messages from ``start`` on, to the end of the grant or of the piece."""

    signed: SignedGrant
    start: int


def batch_of(frames: bytes, following: int) -> pa.RecordBatch:
    """Return a block as Flight sends it; ``following`` is the sequence after it.

    It is made of its buffers: ``pyarrow.array`` imports pandas first, for which a reader would wait on a busy machine.
    """
    offsets, sequence = _OFFSETS.pack(0, len(frames)), _SEQUENCE.pack(following)
    columns = [
        pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(frames)]),
        pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(sequence)]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def signed(token: bytes, grant: Grant) -> SignedGrant:
    """Return a grant, signed by the holder of a token."""
    octets = msgspec.json.encode(grant)
    return SignedGrant(octets, hmac.digest(token, octets, "sha256"))


def is_signed(token: bytes, grant: SignedGrant) -> bool:
    """Return whether the holder of the token signed the grant."""
    return hmac.compare_digest(hmac.digest(token, grant.grant, "sha256"), grant.signature)
