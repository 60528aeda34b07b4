"""Write a user-id into a message without one."""

from __future__ import annotations

from trouter.wire.codec import skip

from .sections import MessageScan

_NULL = b"\x40"


def stamped(data: bytes, start: int, end: int, scan: MessageScan, user: bytes) -> bytes:
    """Return the octets ``data[start:end]`` of a message with ``user`` as the user-id of its properties.

    ``scan`` has scanned them through the properties, which are inserted if absent.
    """
    value = b"\xa0" + bytes((len(user),)) + user if len(user) < 256 else b"\xb0" + len(user).to_bytes(4, "big") + user
    if scan.properties_start < 0:
        at = scan.annotations_end if scan.annotations_end >= 0 else scan.insert_at
        return b"".join((data[start:at], _properties(2, _NULL + value), data[at:end]))
    before, behind = scan.properties_start, scan.properties_end
    count, items = _items(data, before, behind)
    first = items if count == 0 else skip(data, items, behind)
    rest = first if count < 2 else skip(data, first, behind)
    fields = b"".join((data[items:first] or _NULL, value, data[rest:behind]))
    return b"".join((data[start:before], _properties(max(count, 2), fields), data[behind:end]))


def _items(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the number of fields of the properties section ``data[start:end]``, and the offset of the first."""
    offset = skip(data, start + 1, end)
    if data[offset] == 0x45:
        return 0, end
    if data[offset] == 0xC0:
        return data[offset + 2], offset + 3
    return int.from_bytes(data[offset + 5 : offset + 9], "big"), offset + 9


def _properties(count: int, fields: bytes) -> bytes:
    return b"\x00\x53\x73\xd0" + (len(fields) + 4).to_bytes(4, "big") + count.to_bytes(4, "big") + fields
