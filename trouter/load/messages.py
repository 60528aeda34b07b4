"""The messages of a load, encoded once before the clock starts (AMQP 1.0 part 3, 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trouter.wire.constants import PROPERTIES
from trouter.wire.message import data_section, section

#: Bytes of a body that are held in memory for each message; the filler makes up the rest.
_WHOLE_BYTES: Final = 1 << 20
_FILLER: Final = bytes(range(256)) * 1024


@dataclass(frozen=True, slots=True)
class Messages:
    """The bytes of each message, and how often ``filler`` follows to complete the body."""

    each: list[bytes]
    filler: bytes
    repeats: int


def make_messages(size: int, to: tuple[str, ...] = ()) -> Messages:
    """Return messages with a data section of ``size`` bytes: one for each address in ``to``, or one without."""
    repeats = 0 if size <= _WHOLE_BYTES else size // len(_FILLER)
    own = size - repeats * len(_FILLER)
    body = data_section(size) + (_FILLER * (own // len(_FILLER) + 1))[:own]
    heads = [section(PROPERTIES, [None, None, address]) for address in to] or [b""]
    return Messages([head + body for head in heads], _FILLER, repeats)
