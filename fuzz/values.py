"""Any bytes that trouter decodes to a value mean the same value to python-qpid-proton, and so does their re-encoding.

Allowed: DecodeError, because most bytes are no value. The target compares only values that proton's binding can
represent: it has no maps with a key twice and no descriptors that are lists or maps, and it loses the elements behind a
described value inside another value.
"""

from __future__ import annotations

import math
from typing import Any

import proton

from trouter.testing.fuzz import values as typed_values
from trouter.wire import types
from trouter.wire.codec import decode, decode_all, encode
from trouter.wire.errors import DecodeError

MUTATOR = typed_values
COVERS = ("trouter.wire.codec", "trouter.wire.encodings")

#: trouter's types and those of proton; a number of another type is another value.
KINDS: dict[type, type] = {
    types.UByte: proton.ubyte,
    types.UShort: proton.ushort,
    types.UInt: proton.uint,
    types.ULong: proton.ulong,
    types.Byte: proton.byte,
    types.Short: proton.short,
    types.Int: proton.int32,
    types.Long: int,
    types.Timestamp: proton.timestamp,
    types.Symbol: proton.symbol,
    types.Char: proton.char,
    types.Float: proton.float32,
}


class CannotCompare(Exception):
    """Raised for a value that proton's Python binding cannot represent."""


def comparable(value: Any, depth: int = 0) -> None:
    """Raise CannotCompare for a value that proton's binding is known to decode wrongly."""
    if isinstance(value, types.Described):
        if depth or not isinstance(value.descriptor, types.ULong | types.Symbol):
            raise CannotCompare
        comparable(value.value, depth + 1)
    elif isinstance(value, types.Array | types.PairMap):
        raise CannotCompare
    elif isinstance(value, list):
        for item in value:
            comparable(item, depth + 1)
    elif isinstance(value, dict):
        if any(not isinstance(key, str) for key in value) or len({str(key) for key in value}) < len(value):
            raise CannotCompare
        for item in value.values():
            comparable(item, depth + 1)


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, types.Described):
        return same(ours.descriptor, theirs.descriptor) and same(ours.value, theirs.value)
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(same(a, b) for a, b in zip(ours, theirs, strict=True))
    if isinstance(ours, dict):
        return len(ours) == len(theirs) and all(same(value, theirs[key]) for key, value in ours.items())
    if isinstance(ours, types.Decimal32 | types.Decimal64):
        return int.from_bytes(ours.raw, "big") == int(theirs)
    if isinstance(ours, types.Decimal128):
        return ours.raw == bytes(theirs)
    if isinstance(ours, float):
        return isinstance(theirs, float) and (ours == theirs or (math.isnan(ours) and math.isnan(theirs)))
    if isinstance(ours, bytes):
        return ours == bytes(theirs)
    kind = KINDS.get(type(ours))
    if kind is not None:
        return type(theirs) is kind and theirs == ours
    return ours is theirs if ours is None or isinstance(ours, bool) else bool(ours == theirs)


def check(data: bytes) -> None:
    try:
        value, behind = decode(data, 0, len(data))
    except DecodeError:
        return
    try:
        comparable(value)
    except CannotCompare:
        return
    for octets in (data[:behind], encode(value)):
        theirs = proton.Data()
        assert theirs.decode(octets) == len(octets)
        theirs.rewind()
        assert theirs.next() is not None
        found = theirs.get_object()
        assert same(value, found), f"{value!r} is {found!r} to proton"
        again = bytes(theirs.encode())
        assert encode(decode_all(again)) == encode(value)
