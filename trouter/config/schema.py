"""The vocabulary in which entities.py states what can be configured: attributes, their kinds, and what has no effect.

An entity is a frozen dataclass, and its field declarations are the table: loading, the manual and management read it
from there. A field `max_frame_size` is the attribute `maxFrameSize`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from functools import cache
from typing import Any

from trouter.config.nodes import squash


class Kind(Enum):
    """How a value is written."""

    STRING = "text"
    PATH = "path"
    INTEGER = "integer"
    BOOLEAN = "yes or no"
    ENUM = "one of"
    PROPERTIES = "map"


class BadValue(Exception):
    """A value that cannot be used: what is wrong with it, and what to write instead."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of an entity."""

    name: str
    field: str
    kind: Kind
    doc: str
    default: Any
    default_doc: str
    values: tuple[str, ...]
    also: dict[str, str]
    low: int
    high: int
    old_names: tuple[str, ...]
    required: bool
    inert: str
    refused: str
    refused_values: dict[str, str]
    parse: Callable[[Any], Any] | None
    text_only: bool
    extra: bool

    def is_spelled(self, spelling: str) -> bool:
        return any(same_name(spelling, name) for name in (self.name, *self.old_names))


def same_name(spelling: str, name: str) -> bool:
    """Whether `max-frame-size`, `max_frame_size` or `maxFrameSize` is meant by `spelling`."""
    if spelling == name:
        return True
    return re.search("[-_]", spelling) is not None and spelling[0] == name[0] and squash(spelling) == squash(name)


def attribute(
    kind: Kind,
    doc: str,
    default: Any = None,
    *,
    name: str = "",
    default_doc: str = "",
    factory: Callable[[], Any] | None = None,
    values: tuple[str, ...] = (),
    also: dict[str, str] | None = None,
    low: int = 0,
    high: int = 2**31 - 1,
    old: tuple[str, ...] = (),
    required: bool = False,
    inert: str = "",
    refused: str = "",
    refused_values: dict[str, str] | None = None,
    parse: Callable[[Any], Any] | None = None,
    text_only: bool = False,
    extra: bool = False,
) -> Any:
    """Declare a field of an entity as an attribute.

    values, also: of an enum, the values and other spellings of them. low, high: of an integer. old: former names.
    inert: why the attribute is accepted without effect, with a warning. refused: why it may only have its default.
    refused_values: the reasons why some values of an enum cannot be had. parse: turns the plain value into the field's,
    or raises BadValue. text_only: a typed value of the JSON form is not turned into text. extra: trouter's own.
    """
    row = {
        "name": name,
        "kind": kind,
        "doc": doc,
        "default_doc": default_doc,
        "values": values,
        "also": also or {},
        "low": low,
        "high": high,
        "old_names": old,
        "required": required,
        "inert": inert,
        "refused": refused,
        "refused_values": refused_values or {},
        "parse": parse,
        "text_only": text_only,
        "extra": extra,
    }
    if factory is not None:
        return field(default_factory=factory, metadata=row)
    return field(metadata=row) if required else field(default=default, metadata=row)


@cache
def attributes_of(entity: type) -> tuple[Attribute, ...]:
    """The attributes of an entity class, in the order of declaration."""
    return tuple(
        Attribute(
            **{**declared.metadata, "name": declared.metadata["name"] or camel(declared.name)},
            field=declared.name,
            default=None if declared.default is MISSING else declared.default,
        )
        for declared in fields(entity)
        if declared.metadata
    )


def camel(field_name: str) -> str:
    """`max_frame_size` -> `maxFrameSize`."""
    first, *rest = field_name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@dataclass(frozen=True, slots=True)
class EntityType:
    """A kind of section: its name, its entity class, and what holds for the sections of this kind together."""

    section: str
    entity: type
    doc: str
    singleton: bool = False
    #: The field no two sections may have in common, besides `name`.
    key: str = ""
    #: Attributes that are reported by management and cannot be set.
    reported: tuple[str, ...] = ()
