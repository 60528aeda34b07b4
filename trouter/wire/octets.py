"""Put numbers and slices into an output, and cut slices out of an input, without an object in between.

The compiled twin takes these from ``octets.pxd``, where they are plain memory
copies inlined into the callers; this module is what the interpreted twin runs.
They are the only functions of the house with two bodies, because no typed
Python compiles to a copy from bytes into a bytearray that makes no slice first.
"""

from __future__ import annotations


def append_slice(out: bytearray, data: bytes, start: int, end: int) -> None:
    """Append ``data[start:end]``; the caller has checked 0 <= start <= end <= len(data)."""
    out += data[start:end]


def append_framed(out: bytearray, head: bytearray, data: bytes, start: int, end: int) -> None:
    """Append ``head`` with its first four octets set to the size of all, then ``data[start:end]``; checked as above."""
    head[0:4] = (len(head) + end - start).to_bytes(4, "big")
    out += head
    out += data[start:end]


def put_uint32(target: bytearray, offset: int, value: int) -> None:
    """Write ``value`` in 4 octets, big-endian, over what stands at ``offset``; the caller has checked the room."""
    target[offset : offset + 4] = value.to_bytes(4, "big")


def put_tag(target: bytearray, offset: int, number: int) -> None:
    """Write ``number`` in 8 octets, little-endian, over what stands at ``offset``; the caller has checked the room."""
    target[offset : offset + 8] = number.to_bytes(8, "little")


def cut(data: bytes, start: int, end: int) -> bytes:
    """Return ``data[start:end]``; checked as above."""
    return data[start:end]


def stands_at(part: bytes, data: bytes, start: int, end: int) -> bool:
    """Return whether ``data[start:end]`` is ``part``; checked as above."""
    return end - start == len(part) and data.startswith(part, start)


def replaced(data: bytes, start: int, gap: int, part: bytes, behind: int, end: int) -> bytes:
    """Return ``data[start:end]`` with ``part`` for what stands from ``gap`` up to ``behind``; all checked as above."""
    return b"".join((data[start:gap], part, data[behind:end]))
