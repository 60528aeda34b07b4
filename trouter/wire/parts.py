"""Single values, and lists and maps of encoded values: for tables, columns and exact bytes, where ``codec`` is slow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

NULL: Final = b"\x40"
_LIST: Final = 0xC0
_MAP: Final = 0xC1
#: The difference between the format codes of a short list or map and of a wide one.
_WIDE: Final = 0x10


def encode_string(octets: bytes) -> bytes:
    """Return the string whose UTF-8 is ``octets``."""
    size = len(octets)
    return bytes((0xA1, size)) + octets if size < 256 else b"\xb1" + size.to_bytes(4) + octets


def encode_symbol(octets: bytes) -> bytes:
    """Return the symbol whose ASCII is ``octets``."""
    size = len(octets)
    return bytes((0xA3, size)) + octets if size < 256 else b"\xb3" + size.to_bytes(4) + octets


def encode_binary(octets: bytes) -> bytes:
    """Return the binary value of ``octets``."""
    size = len(octets)
    return bytes((0xA0, size)) + octets if size < 256 else b"\xb0" + size.to_bytes(4) + octets


def encode_int(number: int) -> bytes:
    """Return an int in its smallest encoding, or a long beyond 32 bits; OverflowError beyond 64 bits."""
    if -0x80 <= number < 0x80:
        return b"\x54" + number.to_bytes(1, signed=True)
    if -0x80000000 <= number < 0x80000000:
        return b"\x71" + number.to_bytes(4, signed=True)
    return encode_long(number)


def encode_long(number: int) -> bytes:
    """Return a long in its smallest encoding; OverflowError beyond 64 bits."""
    if -0x80 <= number < 0x80:
        return b"\x55" + number.to_bytes(1, signed=True)
    return b"\x81" + number.to_bytes(8, signed=True)


def join_list(content: bytes, count: int) -> bytes:
    """Return the list of ``count`` encoded values, in its smallest encoding except for no values."""
    return _compound(_LIST, content, count)


def join_map(content: bytes, count: int) -> bytes:
    """Return the map of encoded keys and values, ``count`` of both together, in its smallest encoding."""
    return _compound(_MAP, content, count)


def _compound(code: int, content: bytes, count: int) -> bytes:
    size = len(content)
    if size < 255 and count < 256:
        return bytes((code, size + 1, count)) + content
    return _wide(code, content, count)


def wide_list(values: Iterable[bytes]) -> bytes:
    """Return the list of encoded values, with a size and a count of 32 bits."""
    parts = list(values)
    return _wide(_LIST, b"".join(parts), len(parts))


def wide_map(keys_and_values: Iterable[bytes]) -> bytes:
    """Return the map of encoded keys, each before its value, with a size and a count of 32 bits."""
    parts = list(keys_and_values)
    return _wide(_MAP, b"".join(parts), len(parts))


def _wide(code: int, content: bytes, count: int) -> bytes:
    return b"".join(((code + _WIDE).to_bytes(), (len(content) + 4).to_bytes(4), count.to_bytes(4), content))
