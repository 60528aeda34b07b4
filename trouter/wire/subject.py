"""The subject of a message (AMQP 1.0 part 3, 3.2.4), read without decoding the rest of its properties."""

from __future__ import annotations

from typing import Final

from trouter.wire.codec import be32, skip
from trouter.wire.errors import DecodeError

#: The subject is the fourth field of the properties.
_BEFORE: Final = 3


def read_subject(data: bytes, start: int, end: int) -> str | None:
    """Return the subject in the properties section ``data[start:end]``, descriptor included; None if absent or
    malformed.
    """
    try:
        return _read(data, start, end)
    except (DecodeError, IndexError, UnicodeDecodeError):
        return None


def _read(data: bytes, start: int, end: int) -> str | None:
    offset = skip(data, start + 1, end)
    constructor = data[offset]
    if constructor == 0xC0:
        count = data[offset + 2]
        offset += 3
    elif constructor == 0xD0 and end - offset >= 9:
        count = be32(data, offset + 5)
        offset += 9
    else:
        return None
    if count <= _BEFORE:
        return None
    for _ in range(_BEFORE):
        offset = skip(data, offset, end)
    behind = skip(data, offset, end)
    if data[offset] == 0xA1:
        return data[offset + 2 : behind].decode()
    if data[offset] == 0xB1:
        return data[offset + 5 : behind].decode()
    return None
