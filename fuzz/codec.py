"""Any bytes are one value or raise DecodeError; skip and decode end at the same byte; a decoded value can be encoded.

The encoded value decodes and encodes to the same bytes.

Allowed: DecodeError from decode, decode_all and skip, because most bytes are no value. Not allowed: EncodeError,
because a decoded value can be encoded.
"""

from __future__ import annotations

from trouter.testing.fuzz import values as typed_values
from trouter.wire.codec import decode, decode_all, encode, skip
from trouter.wire.errors import DecodeError

MUTATOR = typed_values
COVERS = ("trouter.wire.codec",)


def check(data: bytes) -> None:
    end = len(data)
    try:
        skipped = skip(data, 0, end)
    except DecodeError:
        skipped = -1
    try:
        value, behind = decode(data, 0, end)
    except DecodeError:
        return
    assert skipped == behind
    assert 0 < behind <= end
    again = encode(value)
    assert encode(decode_all(again)) == again
    assert skip(again, 0, len(again)) == len(again)
    repr(value)
