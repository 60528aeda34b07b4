"""Fields of a message's sections, each put into its column; DecodeError for a field of another type."""

from __future__ import annotations

from typing import Final

from trouter.pipeline.columns import Numbers, Texts
from trouter.wire.codec import skip, wide
from trouter.wire.encodings import PRIMITIVES
from trouter.wire.errors import DecodeError

#: Milliseconds that still are an int64 in microseconds.
_MAX_MS: Final = 9_223_372_036_854_775
_MASK32: Final = 1 << 32
_KIND_NAMES: Final = frozenset([primitive.name.encode() for primitive in PRIMITIVES] + [b"described"])


def typed_key(key: bytes, kind: bytes, usual: bytes) -> bytes:
    """A key that tells its type, where it is not the usual one or could be taken for one that does."""
    if kind == usual and key.partition(b":")[0] not in _KIND_NAMES:
        return key
    return kind + b":" + key


def content_of(data: bytes, offset: int, behind: int, name: str, short: int) -> int:
    """Where the octets of a binary (``short`` 0xA0) start, which may be said as a string too unless it is data."""
    code = data[offset]
    if code == short or (code == 0xA1 and name == "user-id"):
        return offset + 2
    if code == short + 0x10 or (code == 0xB1 and name == "user-id"):
        return offset + 5
    raise DecodeError(f"{name} has format code {code:#04x}", offset)


def put_text(column: Texts, row: int, data: bytes, offset: int, end: int, name: str) -> int:
    """A string or a symbol; clients take one for the other."""
    behind = skip(data, offset, end)
    code = data[offset]
    if code & 0xFD == 0xA1:
        offset += 2
    elif code & 0xFD == 0xB1:
        offset += 5
    else:
        raise DecodeError(f"{name} has format code {code:#04x}", offset)
    text = data[offset:behind]
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError:
            raise DecodeError(f"{name} is not UTF-8", offset) from None
    column.put(row, text, 0, behind - offset)
    return behind


def put_flag(column: Numbers, row: int, data: bytes, offset: int, end: int, name: str) -> int:
    """A boolean."""
    behind = skip(data, offset, end)
    code = data[offset]
    if code == 0x41:
        column.put(row, 1)
    elif code == 0x42:
        column.put(row, 0)
    elif code == 0x56 and data[offset + 1] <= 1:
        column.put(row, data[offset + 1])
    elif code != 0x40:
        raise DecodeError(f"{name} has format code {code:#04x}", offset)
    return behind


def put_whole(column: Numbers, row: int, data: bytes, offset: int, end: int, name: str, wanted: int) -> int:
    """A ubyte (``wanted`` 0x50) or a uint (0x70)."""
    behind = skip(data, offset, end)
    code = data[offset]
    if code == (0x50 if wanted == 0x50 else 0x52):
        column.put(row, data[offset + 1])
    elif code == 0x43 and wanted == 0x70:
        column.put(row, 0)
    elif code == 0x70 and wanted == 0x70:
        column.put(row, wide(data, offset + 1))
    elif code != 0x40:
        raise DecodeError(f"{name} has format code {code:#04x}", offset)
    return behind


def put_time(column: Numbers, row: int, data: bytes, offset: int, end: int, name: str) -> int:
    """A timestamp, milliseconds on the wire and microseconds in the column."""
    behind = skip(data, offset, end)
    if data[offset] != 0x83:
        raise DecodeError(f"{name} has format code {data[offset]:#04x}", offset)
    high = wide(data, offset + 1)
    if high >= 0x80000000:
        high -= _MASK32
    ms = high * _MASK32 + wide(data, offset + 5)
    if ms > _MAX_MS or ms < -_MAX_MS:
        raise DecodeError(f"{name} {ms} is beyond what a timestamp can say", offset)
    column.put(row, ms * 1000)
    return behind
