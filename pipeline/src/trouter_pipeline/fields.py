"""Fields of a message's sections, each put into its column; DecodeError for a field of another type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trouter.wire.codec import be32, skip
from trouter.wire.encodings import PRIMITIVES
from trouter.wire.errors import DecodeError
from trouter_pipeline.columns import Numbers, Texts

if TYPE_CHECKING:
    from cython import Py_ssize_t

#: Milliseconds that fit an int64 as microseconds.
_MAX_MS: Final[Py_ssize_t] = 9_223_372_036_854_775
_MASK32: Final[Py_ssize_t] = 1 << 32
_KIND_NAMES: Final[frozenset[bytes]] = frozenset([primitive.name.encode() for primitive in PRIMITIVES] + [b"described"])


def typed_key(key: bytes, kind: bytes, usual: bytes) -> bytes:
    """Return the key with its type as prefix if that is not the usual one, or if the key looks like a prefixed one."""
    if kind == usual and key.partition(b":")[0] not in _KIND_NAMES:
        return key
    return kind + b":" + key


def content_of(data: bytes, offset: Py_ssize_t, behind: Py_ssize_t, name: str, short: Py_ssize_t) -> Py_ssize_t:
    """Return the start of a binary's content (``short`` 0xA0); a user-id may be a string. DecodeError."""
    code: Py_ssize_t = data[offset]
    if code == short or (code == 0xA1 and name == "user-id"):
        return offset + 2
    if code == short + 0x10 or (code == 0xB1 and name == "user-id"):
        return offset + 5
    raise DecodeError(f"{name} has format code {code:#04x}", offset)


def put_text(column: Texts, row: Py_ssize_t, data: bytes, offset: Py_ssize_t, end: Py_ssize_t, name: str) -> Py_ssize_t:
    """Put a string or symbol, which clients confuse; return its end. DecodeError."""
    behind: Py_ssize_t = skip(data, offset, end)
    code: Py_ssize_t = data[offset]
    if code & 0xFD == 0xA1:
        offset += 2
    elif code & 0xFD == 0xB1:
        offset += 5
    else:
        raise DecodeError(f"{name} has format code {code:#04x}", offset)
    text: bytes = data[offset:behind]
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError:
            raise DecodeError(f"{name} is not UTF-8", offset) from None
    column.put(row, text, 0, behind - offset)
    return behind


def put_flag(
    column: Numbers, row: Py_ssize_t, data: bytes, offset: Py_ssize_t, end: Py_ssize_t, name: str
) -> Py_ssize_t:
    """Put a boolean; return its end. DecodeError."""
    behind: Py_ssize_t = skip(data, offset, end)
    code: Py_ssize_t = data[offset]
    if code == 0x41:
        column.put(row, 1)
    elif code == 0x42:
        column.put(row, 0)
    elif code == 0x56 and data[offset + 1] <= 1:
        column.put(row, data[offset + 1])
    elif code != 0x40:
        raise DecodeError(f"{name} has format code {code:#04x}", offset)
    return behind


def put_whole(
    column: Numbers, row: Py_ssize_t, data: bytes, offset: Py_ssize_t, end: Py_ssize_t, name: str, wide: bool
) -> Py_ssize_t:
    """Put a uint (``wide``) or a ubyte; return its end. DecodeError."""
    behind: Py_ssize_t = skip(data, offset, end)
    code: Py_ssize_t = data[offset]
    if code == (0x52 if wide else 0x50):
        column.put(row, data[offset + 1])
    elif wide and code == 0x43:
        column.put(row, 0)
    elif wide and code == 0x70:
        column.put(row, be32(data, offset + 1))
    elif code != 0x40:
        raise DecodeError(f"{name} has format code {code:#04x}", offset)
    return behind


def put_time(
    column: Numbers, row: Py_ssize_t, data: bytes, offset: Py_ssize_t, end: Py_ssize_t, name: str
) -> Py_ssize_t:
    """Put a timestamp, milliseconds on the wire, as microseconds; return its end. DecodeError."""
    behind: Py_ssize_t = skip(data, offset, end)
    if data[offset] != 0x83:
        raise DecodeError(f"{name} has format code {data[offset]:#04x}", offset)
    high: Py_ssize_t = be32(data, offset + 1)
    if high >= 0x80000000:
        high -= _MASK32
    ms: Py_ssize_t = high * _MASK32 + be32(data, offset + 5)
    if ms > _MAX_MS or ms < -_MAX_MS:
        raise DecodeError(f"{name} {ms} is beyond the range of a timestamp", offset)
    column.put(row, ms * 1000)
    return behind
