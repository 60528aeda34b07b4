"""The vocabulary in which entities state what can be configured and asked for: attributes, their kinds, their types.

An entity is a frozen dataclass, and its field declarations are the table: loading, the manual and management read it
from there. A field `max_frame_size` is the attribute `maxFrameSize`. Types of which nothing is configured declare
their attributes with `column`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from functools import cache, cached_property, partial
from typing import Any, Final, TypedDict, Unpack

from trouter.config.nodes import squash
from trouter.config.problems import SourcePosition

#: Begins the full name of every type.
PREFIX: Final = "org.apache.qpid.dispatch"


class Kind(Enum):
    """How a value is written."""

    STRING = "text"
    PATH = "path"
    INTEGER = "integer"
    BOOLEAN = "yes or no"
    ENUM = "one of"
    PROPERTIES = "map of properties"
    MAP = "map"
    LIST = "list"
    ENTITY_ID = "identity"


#: What management calls the kinds; an enum is called by its values.
TYPE_NAMES: Final = {
    Kind.STRING: "string",
    Kind.PATH: "path",
    Kind.INTEGER: "integer",
    Kind.BOOLEAN: "boolean",
    Kind.PROPERTIES: "properties",
    Kind.MAP: "map",
    Kind.LIST: "list",
    Kind.ENTITY_ID: "entityId",
}


class Unset(Enum):
    """What stands for "no other value"."""

    DEFAULT = "the default"


class Reload(Enum):
    """When a changed value takes effect."""

    LIVE = "at once"
    NEXT = "for what comes afterwards"
    RESTART = "after a restart"


NEXT: Final = Reload.NEXT
RESTART: Final = Reload.RESTART


class BadValue(Exception):
    """A value that cannot be used: what is wrong with it, what to write instead, and where within it, if not all."""

    def __init__(
        self, message: str, suggestion: str = "", *, place: SourcePosition | None = None, key: str = "", text: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion
        self.place = place
        self.key = key
        self.text = text


class Doubt(BadValue):
    """A value that the older router takes in a way of its own: ``value`` is what it then has.

    Without secureDefaults that is used, with the warning of the ``point`` in the table of strictness; with it the
    value is refused.
    """

    def __init__(
        self,
        point: str,
        value: object,
        message: str,
        suggestion: str = "",
        *,
        place: SourcePosition | None = None,
        key: str = "",
        text: str = "",
    ) -> None:
        super().__init__(message, suggestion, place=place, key=key, text=text)
        self.point = point
        self.value = value

    def at(self, place: SourcePosition, key: str, text: str) -> Doubt:
        """Return the same about a part of a value."""
        return Doubt(self.point, self.value, self.message, self.suggestion, place=place, key=key, text=text)


class OutOfRange(BadValue):
    """An integer out of the bounds of its attribute; ``nearest`` is the nearest within them."""

    def __init__(self, nearest: int, suggestion: str) -> None:
        super().__init__("is out of range", suggestion)
        self.nearest = nearest


class BadValues(Exception):
    """Several things are wrong with one value. Where all of them are doubts, ``value`` is what is left of it."""

    def __init__(self, bad: Iterable[BadValue], value: object = None) -> None:
        self.bad = tuple(bad)
        self.value = value
        super().__init__("; ".join(one.message for one in self.bad))


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a type."""

    name: str
    kind: Kind
    doc: str
    #: The field of the entity; empty for what is only reported.
    field: str = ""
    default: Any = None
    default_doc: str = ""
    values: tuple[str, ...] = ()
    also: Mapping[str, str] = dataclasses.field(default_factory=dict)
    low: int = 0
    high: int = 2**31 - 1
    old_names: tuple[str, ...] = ()
    #: Another name under which rows carry it too.
    twin: str = ""
    #: What rows and the schema show when it is not given, where that is not the default.
    shown: Any = None
    #: What rows show, and the schema gives as the default, where it is not given and the older router shows another
    #: value than the one that holds.
    unset: Any = Unset.DEFAULT
    required: bool = False
    #: What to say when it is required and missing.
    missing: str = ""
    #: What to say of a value that is none, where the older router has a text for it.
    wrong: str = ""
    #: May be given in a file and in CREATE; may be changed by UPDATE.
    create: bool = False
    update: bool = False
    graph: bool = False
    unique: bool = False
    secret: bool = False
    deprecated: bool = False
    reload: Reload = Reload.LIVE
    #: Why it has no effect.
    inert: str = ""
    parse: Callable[[Any], Any] | None = None
    text_only: bool = False
    #: A list of texts, or one text with commas between them.
    entries: bool = False
    extra: bool = False

    @property
    def settable(self) -> bool:
        return self.create or self.update

    @property
    def schema_default(self) -> str | int | bool | None:
        """The default as management tells it; None when it cannot tell."""
        if self.unset is not Unset.DEFAULT:
            return self.unset  # type: ignore[no-any-return]
        plain = self.default if isinstance(self.default, str | int) else None
        return self.shown if isinstance(self.shown, str | int) else plain

    @property
    def type_name(self) -> str | list[str]:
        """The type as management tells it: a name, or the values of an enum."""
        return list(self.values) if self.kind is Kind.ENUM else TYPE_NAMES[self.kind]

    def is_spelled(self, spelling: str) -> bool:
        return any(same_name(spelling, name) for name in (self.name, *self.old_names))


def same_name(spelling: str, name: str) -> bool:
    """Return whether `max-frame-size`, `max_frame_size` or `maxFrameSize` is meant by `spelling`."""
    if spelling == name:
        return True
    return re.search("[-_]", spelling) is not None and spelling[0] == name[0] and squash(spelling) == squash(name)


class Terms(TypedDict, total=False):
    """What a declaration may say of an attribute, named as in ``Attribute``; what it does not say has its default."""

    name: str
    default_doc: str
    #: Of an enum: the values, and other spellings of them.
    values: tuple[str, ...]
    also: Mapping[str, str]
    #: Of an integer.
    low: int
    high: int
    old_names: tuple[str, ...]
    twin: str
    shown: Any
    unset: Any
    missing: str
    wrong: str
    update: bool
    graph: bool
    unique: bool
    secret: bool
    deprecated: bool
    reload: Reload
    inert: str
    #: Turns the plain value into the field's, or raises BadValue.
    parse: Callable[[Any], Any] | None
    #: A typed value of the JSON form is not turned into text.
    text_only: bool
    #: May be a list; ``parse`` gets a tuple of texts, blanks around them gone and none of them empty.
    entries: bool
    #: trouter's own.
    extra: bool


def attribute(
    kind: Kind,
    doc: str,
    default: Any = None,
    *,
    factory: Callable[[], Any] | None = None,
    required: bool = False,
    **terms: Unpack[Terms],
) -> Any:
    """Declare a field of an entity as an attribute that can be set; ``factory`` makes a new default each time."""
    row = {"update": True, **terms, "kind": kind, "doc": doc, "required": required, "create": True}
    if factory is not None:
        return field(default_factory=factory, metadata=row)
    return field(metadata=row) if required else field(default=default, metadata=row)


#: Declare an attribute of one kind, with what else ``attribute`` takes.
string: Final = partial(attribute, Kind.STRING)
path: Final = partial(attribute, Kind.PATH)
integer: Final = partial(attribute, Kind.INTEGER)
boolean: Final = partial(attribute, Kind.BOOLEAN)
choice: Final = partial(attribute, Kind.ENUM)
properties: Final = partial(attribute, Kind.PROPERTIES)
mapping: Final = partial(attribute, Kind.MAP)


def reported(kind: Kind, doc: str, **terms: Unpack[Terms]) -> Any:
    """Declare, among the fields of an entity, an attribute that only management shows; the field itself stays None."""
    row = {**terms, "kind": kind, "doc": doc}
    return field(default=None, init=False, repr=False, compare=False, metadata=row)


#: Declare a number that only management shows, worth a graph.
counter: Final = partial(reported, Kind.INTEGER, graph=True)


def column(
    name: str, kind: Kind, doc: str, /, *, default: Any = None, required: bool = False, **terms: Unpack[Terms]
) -> Attribute:
    """Declare an attribute of a type of which nothing is configured."""
    return Attribute(**{**terms, "name": name, "kind": kind, "doc": doc, "default": default, "required": required})


@cache
def attributes_of(entity: type) -> tuple[Attribute, ...]:
    """Return the attributes of an entity class that can be set: its own in the order of declaration, then the name."""
    return tuple(row for row in all_attributes_of(entity) if row.settable)


@cache
def all_attributes_of(entity: type) -> tuple[Attribute, ...]:
    """Return the attributes of an entity class, reported ones too, in the order of declaration; the name is last."""
    rows = [
        Attribute(
            **{**declared.metadata, "name": declared.metadata.get("name") or camel(declared.name)},
            field=declared.name,
            default=None if declared.default is MISSING else declared.default,
        )
        for declared in fields(entity)
        if declared.metadata
    ]
    return tuple(sorted(rows, key=lambda row: row.name == "name"))


def camel(field_name: str) -> str:
    """Return the name of the attribute of a field: `max_frame_size` -> `maxFrameSize`."""
    first, *rest = field_name.split("_")
    return first + "".join(word.capitalize() for word in rest)


NAME: Final = Attribute("name", Kind.STRING, "A name that you choose, unique among entities.", create=True, unique=True)
IDENTITY: Final = Attribute(
    "identity",
    Kind.STRING,
    "What management calls the entity; for an entity without a name it is generated.",
    unique=True,
)
TYPE: Final = Attribute("type", Kind.STRING, "The full name of the entity's type.", required=True, create=True)

BASES: Final = {"configuration": ("configurationEntity", "entity"), "operational": ("operationalEntity", "entity")}


@dataclass(frozen=True)
class EntityType:
    """A kind of entity, as files, management and the manual know it."""

    #: The name without PREFIX, the key in GET-SCHEMA if that is another, and the names of its sections in files.
    short: str
    doc: str
    schema_key: str = ""
    sections: tuple[str, ...] = ()
    entity: type | None = None
    #: Attributes of its own, when no entity class declares them.
    columns: tuple[Attribute, ...] = ()
    #: Short names, the nearest first.
    bases: tuple[str, ...] = ()
    #: As GET-OPERATIONS lists them; those inherited from the bases; those that work without being listed.
    operations: tuple[str, ...] = ()
    inherited: tuple[str, ...] = ("READ",)
    extra_operations: tuple[str, ...] = ()
    singleton: bool = False
    deprecated: bool = False
    #: Others refer to it by name.
    referenced: bool = False
    #: Rows carry null for what an entity does not have; otherwise it is left out.
    core: bool = False
    #: trouter's own; such types come last.
    extra: bool = False
    #: Why entities of this type are not put into service, whatever they say.
    unserved: str = ""
    #: What becomes of an entity that is not served.
    instead: str = ""
    #: The point of the table of strictness by which unknown attributes are told of, not refused.
    lenient: str = ""

    @property
    def full_name(self) -> str:
        return f"{PREFIX}.{self.short}"

    @property
    def key(self) -> str:
        """Its name among the types of GET-SCHEMA."""
        return self.schema_key or self.short

    @property
    def section(self) -> str:
        """Its name in files, empty when it has none."""
        return self.sections[0] if self.sections else ""

    @cached_property
    def own(self) -> tuple[Attribute, ...]:
        """Its own attributes, in the order of the schema; trouter's own stand last."""
        rows = self.columns if self.entity is None else all_attributes_of(self.entity)
        own = [row for row in rows if row.name != "name"]
        return tuple(sorted(own, key=lambda row: row.extra))

    @cached_property
    def fields(self) -> tuple[Attribute, ...]:
        """The attributes that its entities have as fields: those that can be set, the name last."""
        return () if self.entity is None else attributes_of(self.entity)

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """What an entity has where nothing is given, by field."""
        return {row.field: row.default for row in self.fields}

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """Every attribute, in the order of the schema: its own, then name, identity and type."""
        return (*self.own, NAME, IDENTITY, TYPE)

    @cached_property
    def _by_name(self) -> dict[str, Attribute]:
        return {name: row for row in self.attributes for name in (*row.old_names, row.twin, row.name) if name}

    def attribute(self, name: str) -> Attribute | None:
        """Return the attribute of this name, or that once had this name."""
        return self._by_name.get(name)

    @cached_property
    def _by_spelling(self) -> dict[str, Attribute]:
        return {name: row for row in reversed(self.fields) for name in (row.name, *row.old_names)}

    def field_spelled(self, spelling: str) -> Attribute | None:
        """Return the field that `spelling` names, or names by a former name."""
        row = self._by_spelling.get(spelling)
        return row or next((row for row in self.fields if row.is_spelled(spelling)), None)

    @property
    def settable(self) -> tuple[Attribute, ...]:
        return tuple(row for row in self.attributes if row.settable and row is not TYPE)

    @property
    def all_operations(self) -> tuple[str, ...]:
        """Every operation that works on an entity of this type."""
        return tuple(dict.fromkeys((*self.operations, *self.inherited, *self.extra_operations)))
