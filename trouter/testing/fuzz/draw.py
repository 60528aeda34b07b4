"""Typed values out of a fuzzer's bytes, as arguments for functions."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeVar

from trouter.hooks import ListenerFacts, SslProfileFacts
from trouter.hooks.consumers import DECISION_ACTIONS
from trouter.hooks.facts import INSECURE_PLAIN_CHOICES, STRIP_ANNOTATIONS_CHOICES, UID_MISSING_CHOICES

T = TypeVar("T")

#: Fields that take one of a few texts.
CHOICES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    (ListenerFacts.__name__, "allow_insecure_plain"): INSECURE_PLAIN_CHOICES,
    (ListenerFacts.__name__, "strip_annotations"): STRIP_ANNOTATIONS_CHOICES,
    (SslProfileFacts.__name__, "uid_missing"): UID_MISSING_CHOICES,
    ("Decision", "action"): DECISION_ACTIONS,
}
_MAX_ITEMS: Final = 4


class Draw:
    """Takes values from the front of ``data``; after its end every value is its type's smallest."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def rest(self) -> bytes:
        """Return all bytes that are left."""
        return self.octets(len(self._data) - self._at)

    def octets(self, count: int) -> bytes:
        """Return the next ``count`` bytes, or as many as are left."""
        taken = self._data[self._at : self._at + count]
        self._at += len(taken)
        return taken

    def number(self, low: int, high: int) -> int:
        """Return a whole number from ``low`` to ``high``."""
        width = ((high - low).bit_length() + 7) // 8
        return low + int.from_bytes(self.octets(width), "big") % (high - low + 1)

    def flag(self) -> bool:
        """Return True or False."""
        return bool(self.number(0, 1))

    def choice(self, among: Sequence[T]) -> T:
        """Return one of ``among``."""
        return among[self.number(0, len(among) - 1)]

    def piece(self) -> bytes:
        """Return up to 255 bytes; the next byte is their number."""
        return self.octets(self.number(0, 255))

    def text(self) -> str:
        """Return text of up to 255 bytes; invalid UTF-8 is replaced."""
        return self.piece().decode("utf-8", "replace")

    def value(self, kind: Any) -> Any:
        """Return a value of type ``kind``: number, text, bytes, dataclass, Enum, or a tuple, map or union of them.

        TypeError for a type that cannot be made of bytes, such as a protocol.
        """
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if origin in (types.UnionType, typing.Union):
            return self.value(self.choice([each for each in inner if _can_be_made(each)]))
        if origin in (tuple, list, Sequence) or kind in (tuple, list):
            return self._row(origin, inner)
        if origin in (dict, Mapping):
            return {self.value(inner[0]): self.value(inner[1]) for _ in range(self.number(0, _MAX_ITEMS))}
        maker = _PLAIN.get(kind)
        if maker is not None:
            return maker(self)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return self.choice(list(kind))
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            return self._record(kind)
        raise TypeError(f"no {kind} can be made of bytes")

    def _row(self, origin: Any, inner: tuple[Any, ...]) -> Any:
        if inner and inner[-1] is not ... and origin is tuple:
            return tuple(self.value(each) for each in inner)
        items = [self.value(inner[0] if inner else bytes) for _ in range(self.number(0, _MAX_ITEMS))]
        return items if origin is list else tuple(items)

    def _record(self, kind: type) -> Any:
        """Return an instance of a dataclass; fields that cannot be made of bytes keep their defaults."""
        hints = typing.get_type_hints(kind)
        given = {}
        for each in dataclasses.fields(kind):
            if (kind.__name__, each.name) in CHOICES:
                given[each.name] = self.choice(CHOICES[kind.__name__, each.name])
            elif _can_be_made(hints[each.name]):
                given[each.name] = self.value(hints[each.name])
        return kind(**given)


def _can_be_made(kind: Any) -> bool:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return any(_can_be_made(each) for each in inner)
    if origin is not None:
        return origin in (tuple, list, dict, Sequence, Mapping)
    if kind in _PLAIN:
        return True
    return isinstance(kind, type) and (issubclass(kind, Enum) or dataclasses.is_dataclass(kind))


_PLAIN: Final[dict[Any, Callable[[Draw], Any]]] = {
    int: lambda draw: draw.number(0, 2**32 - 1),
    bool: Draw.flag,
    str: Draw.text,
    bytes: Draw.piece,
    float: lambda draw: draw.number(0, 2**32 - 1) / 16,
    object: Draw.text,
    type(None): lambda draw: None,
}
