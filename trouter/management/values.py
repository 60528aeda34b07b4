"""Values of entities as values of AMQP types."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final
from uuid import UUID

from trouter.wire.types import Array, Described, Int, PairMap

_INT_LOW: Final = -(2**31)
_INT_HIGH: Final = 2**31 - 1
_ITSELF: Final = (int, str, bytes, float, Array, Described, PairMap, UUID)


def to_wire(value: Any) -> object:
    """Return ``value`` for an answer: a plain int as an int if it fits, else a long; unknown types as text."""
    kind = type(value)
    if value is None or kind is str or kind is bool:
        return value
    if kind is int:
        return Int(value) if _INT_LOW <= value <= _INT_HIGH else value
    if isinstance(value, Enum):
        return to_wire(value.value)
    if isinstance(value, _ITSELF):
        return value
    if isinstance(value, Mapping):
        return {str(key): to_wire(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return [to_wire(item) for item in sorted(value)]
    if isinstance(value, list | tuple):
        return [to_wire(item) for item in value]
    return str(value)
