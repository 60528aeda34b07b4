"""Any bytes are a message's sections in order or raise InvalidMessage, whole or in pieces, as the reference decides.

The first byte seeds the cuts. The reference decodes one section after the other and compares the descriptors with the
order of the standard.

Allowed: InvalidMessage, because most bytes are no message.
"""

from __future__ import annotations

import random
from itertools import pairwise

from trouter.testing.fuzz import behind, values
from trouter.wire.codec import decode, skip
from trouter.wire.errors import DecodeError
from trouter.wire.order import SectionOrder
from trouter.wire.sections import SECTIONS_BY_SYMBOL, InvalidMessage
from trouter.wire.types import Symbol, ULong

MUTATOR = behind(1, values)
COVERS = ("trouter.wire.order",)


def in_order(data: bytes) -> bool | None:
    """Return whether the sections are in the standard's order; None where a section does not decode."""
    last = 0x6F
    at = 0
    while at < len(data):
        if data[at] != 0:
            return False
        try:
            descriptor, value = decode(data, at + 1, len(data))
            at = skip(data, value, len(data))
        except DecodeError:
            return None
        if not isinstance(descriptor, ULong | Symbol):
            return False
        code = SECTIONS_BY_SYMBOL.get(descriptor.encode(), 0) if isinstance(descriptor, Symbol) else int(descriptor)
        if not 0x70 <= code <= 0x78:
            return False
        again = code == last and code in (0x75, 0x76)
        if not again and (code <= last or (last >= 0x75 and code != 0x78)):
            return False
        last = code
    return True


def accepts(pieces: list[bytes]) -> bool:
    order = SectionOrder()
    try:
        for number, piece in enumerate(pieces):
            order.check_bytes(piece, 0, len(piece), number == len(pieces) - 1)
    except InvalidMessage:
        return False
    return True


def whole(data: bytes) -> bool:
    try:
        SectionOrder().check_message(data, 0, len(data))
    except InvalidMessage:
        return False
    return True


def check(data: bytes) -> None:
    how, message = (data[0], data[1:]) if data else (0, b"")
    found = whole(message)
    assert accepts([message]) == found
    rng = random.Random(how)
    edges = [0, *sorted(rng.randrange(len(message) + 1) for _ in range(how % 7)), len(message)]
    assert accepts([message[a:b] for a, b in pairwise(edges)]) == found
    assert accepts([message[at : at + 1] for at in range(len(message))] or [b""]) == found
    expected = in_order(message)
    if expected is not None:
        assert found == expected
