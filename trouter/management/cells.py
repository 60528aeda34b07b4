"""Rows as bytes: most cells are taken from tables, the rest is encoded by the codec, with the same result.

Listings have hundreds of thousands of cells, nearly all of them short texts, small numbers or null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from trouter.wire.codec import encode
from trouter.wire.types import UInt, ULong

if TYPE_CHECKING:
    from cython import Py_ssize_t

_SMALL: Final = 256
_ULONGS: Final[list[bytes]] = [encode(ULong(number)) for number in range(_SMALL)]
_UINTS: Final[list[bytes]] = [encode(UInt(number)) for number in range(_SMALL)]
_NULL: Final[bytes] = encode(None)
_TRUE: Final[bytes] = encode(True)
_FALSE: Final[bytes] = encode(False)
_STR8: Final[list[bytes]] = [bytes((0xA1, size)) for size in range(_SMALL)]
_LIST8: Final = 0xC0
_LIST32: Final = b"\xd0"
_EMPTY: Final[bytes] = encode([])


def encode_row(cells: Sequence[object]) -> bytes:
    """Return a list of values of AMQP types, encoded as the codec would."""
    parts: list[bytes] = [_cell(cell) for cell in cells]
    if not parts:
        return _EMPTY
    content: bytes = b"".join(parts)
    size: Py_ssize_t = len(content) + 1
    count: Py_ssize_t = len(parts)
    if size < _SMALL and count < _SMALL:
        return bytes((_LIST8, size, count)) + content
    return b"".join((_LIST32, (size + 3).to_bytes(4, "big"), count.to_bytes(4, "big"), content))


def _cell(cell: Any) -> bytes:
    if cell is None:
        return _NULL
    kind = type(cell)
    if kind is ULong:
        return _ULONGS[cell] if cell < _SMALL else encode(cell)
    if kind is str:
        encoded: bytes = cell.encode()
        return _STR8[len(encoded)] + encoded if len(encoded) < _SMALL else encode(cell)
    if kind is UInt:
        return _UINTS[cell] if cell < _SMALL else encode(cell)
    if kind is bool:
        return _TRUE if cell else _FALSE
    return encode_row(cell) if kind is list else encode(cell)
