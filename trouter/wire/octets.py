"""Put numbers and slices into an output, and cut slices out of an input, without an object in between.

The compiled twin takes these from ``octets.pxd``, as memory copies inlined into the callers; the interpreted twin runs
this module. They need two bodies because no typed Python compiles to a copy from bytes into a bytearray without a
slice.
"""

from __future__ import annotations


def get_uint32(data: bytes, offset: int) -> int:
    """Return the big-endian number in the 4 bytes at ``offset``; the caller has checked that they are there."""
    return int.from_bytes(data[offset : offset + 4], "big")


def append_slice(out: bytearray, data: bytes, start: int, end: int) -> None:
    """Append ``data[start:end]``; the caller ensures 0 <= start <= end <= len(data), here and below."""
    out += data[start:end]


def lengthen(out: bytearray, size: int) -> None:
    """Make ``out`` ``size`` bytes long, which it is not yet; what the new ones are is undefined."""
    out += bytes(size - len(out))


def put_slice(target: bytearray, offset: int, data: bytes, start: int, end: int) -> None:
    """Overwrite as many bytes at ``offset`` with ``data[start:end]``; the caller has checked the room."""
    target[offset : offset + end - start] = data[start:end]


def put_uint32(target: bytearray, offset: int, value: int) -> None:
    """Overwrite 4 bytes at ``offset`` with ``value``, big-endian; the caller has checked the room."""
    target[offset : offset + 4] = value.to_bytes(4, "big")


def put_tag(target: bytearray, offset: int, number: int) -> None:
    """Overwrite 8 bytes at ``offset`` with ``number``, little-endian; the caller has checked the room."""
    target[offset : offset + 8] = number.to_bytes(8, "little")


def cut(data: bytes, start: int, end: int) -> bytes:
    """Return ``data[start:end]``."""
    return data[start:end]


def stands_at(part: bytes, data: bytes, start: int, end: int) -> bool:
    """Return whether ``data[start:end]`` equals ``part``."""
    return end - start == len(part) and data.startswith(part, start)


def replaced(data: bytes, start: int, gap: int, part: bytes, behind: int, end: int) -> bytes:
    """Return ``data[start:end]`` with ``part`` in place of ``data[gap:behind]``."""
    return b"".join((data[start:gap], part, data[behind:end]))


def find_part(part: bytes, data: bytes, start: int, end: int) -> int:
    """Return where ``part`` begins in ``data[start:end]``, -1 if it is not there."""
    return data.find(part, start, end)


def octet_at(data: bytes, place: int) -> int:
    """Return one octet; the caller ensures 0 <= place < len(data)."""
    return data[place]


def is_less_at(data: bytes, place: int, part: bytes) -> bool:
    """Return whether the octets at ``place``, as many as ``part`` has, are less than it; the caller ensures them."""
    return data[place : place + len(part)] < part
