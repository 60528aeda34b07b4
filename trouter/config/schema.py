"""Declares what can be configured and queried: attributes, their kinds, and types of entities.

An entity is a frozen dataclass; loading, the manual and management read its attributes from its fields. The field
`max_frame_size` is the attribute `maxFrameSize`. Types without configured entities declare attributes with `column`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from functools import cache, cached_property, partial
from typing import Any, Final, TypedDict, Unpack

from trouter.columns.column import COMMON, Column, EntityId, Head, Merge
from trouter.config.nodes import squash
from trouter.config.point import Point
from trouter.config.problems import SourcePosition

#: Begins the full name of every type.
PREFIX: Final = "org.apache.qpid.dispatch"


class Kind(Enum):
    """The form of a value in a file."""

    STRING = "text"
    PATH = "path"
    INTEGER = "integer"
    BOOLEAN = "yes or no"
    ENUM = "one of"
    PROPERTIES = "map of properties"
    MAP = "map"
    LIST = "list"
    ENTITY_ID = "identity"


#: The names of the kinds in management, which shows the values of an enum in their place.
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
    """The mark of an attribute whose value, if it was never given, is shown as the default."""

    DEFAULT = "the default"


class Reload(Enum):
    """The time when a changed value takes effect."""

    LIVE = "at once"
    NEXT = "for what comes afterwards"
    RESTART = "after a restart"


NEXT: Final = Reload.NEXT
RESTART: Final = Reload.RESTART


class BadValue(Exception):
    """A value that cannot be used: the fault, what to write instead, and the place if only a part is wrong."""

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
    """A value that Qpid Dispatch reads in its own way, as ``value``.

    Without secureDefaults the router uses ``value``, with the warning of the ``point`` in the table of strictness;
    with secureDefaults it refuses the value.
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
        """Return the same doubt about a part of a value."""
        return Doubt(self.point, self.value, self.message, self.suggestion, place=place, key=key, text=text)


class OutOfRange(BadValue):
    """An integer out of the bounds of its attribute; ``nearest`` is the nearest within them."""

    def __init__(self, nearest: int, suggestion: str) -> None:
        super().__init__("is out of range", suggestion)
        self.nearest = nearest


class BadValues(Exception):
    """Several faults of one value; if all of them are doubts, ``value`` is what remains of it."""

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
    #: The field of the entity; empty if no entity class declares the attribute.
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
    #: Its points of strictness, without their subject.
    points: tuple[Point, ...] = ()
    #: The unit of its values; empty for none.
    unit: str = ""
    #: Its column in `trouter stat`; None for none.
    head: Head | None = None
    #: The value that rows and the schema show if it is not given; None for the default.
    shown: Any = None
    #: The value that rows and the schema show as Qpid Dispatch does if it is not given; another one is in force.
    unset: Any = Unset.DEFAULT
    #: The default that the schema names, if Qpid Dispatch has another than the one in force.
    older_default: Any = Unset.DEFAULT
    required: bool = False
    #: The error if it is required and missing.
    missing: str = ""
    #: Qpid Dispatch's error for a malformed value; empty if it has none.
    wrong: str = ""
    #: `create`: a file or CREATE may give it; `update`: UPDATE may change it.
    create: bool = False
    update: bool = False
    graph: bool = False
    unique: bool = False
    secret: bool = False
    deprecated: bool = False
    reload: Reload = Reload.LIVE
    #: The reason why it has no effect; empty if it has one.
    inert: str = ""
    parse: Callable[[Any], Any] | None = None
    text_only: bool = False
    #: A list of texts, or one text with commas between them.
    entries: bool = False
    extra: bool = False
    #: What becomes of the values of several workers.
    merge: Merge = Merge.FIRST

    @property
    def settable(self) -> bool:
        return self.create or self.update

    @property
    def schema_default(self) -> str | int | bool | None:
        """The default in the schema of management; None if it is no text, number or truth value."""
        for value in (self.unset, self.older_default):
            if value is not Unset.DEFAULT:
                return value  # type: ignore[no-any-return]
        plain = self.default if isinstance(self.default, str | int) else None
        return self.shown if isinstance(self.shown, str | int) else plain

    @property
    def type_name(self) -> str | list[str]:
        """The type in the schema of management: a name, or the values of an enum."""
        return list(self.values) if self.kind is Kind.ENUM else TYPE_NAMES[self.kind]


class Spellings:
    """Attributes by all spellings of their names and former names; of several the first counts."""

    def __init__(self, rows: Sequence[Attribute]) -> None:
        self._by_name = {name: row for row in reversed(rows) for name in (row.name, *row.old_names)}
        self._by_squashed = {(name[0], squash(name)): row for name, row in reversed(self._by_name.items())}

    def find(self, spelling: str) -> Attribute | None:
        row = self._by_name.get(spelling)
        if row is not None or re.search("[-_]", spelling) is None:
            return row
        return self._by_squashed.get((spelling[0], squash(spelling)))


def same_name(spelling: str, name: str) -> bool:
    """Return whether a spelling is that of a name: of `maxFrameSize` also `max-frame-size` and `max_frame_size`."""
    if spelling == name:
        return True
    return re.search("[-_]", spelling) is not None and spelling[0] == name[0] and squash(spelling) == squash(name)


class Terms(TypedDict, total=False):
    """The optional terms of a declaration, with the names and defaults of ``Attribute``."""

    name: str
    default_doc: str
    #: The values of an enum, and other spellings of them.
    values: tuple[str, ...]
    also: Mapping[str, str]
    #: The bounds of an integer.
    low: int
    high: int
    old_names: tuple[str, ...]
    twin: str
    unit: str
    head: Head | None
    shown: Any
    unset: Any
    older_default: Any
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
    #: A value of the JSON form that is no text is an error, not turned into text.
    text_only: bool
    #: The value may be a list; ``parse`` gets a tuple of its texts without blanks around them and empty ones.
    entries: bool
    #: Only trouter has the attribute.
    extra: bool
    merge: Merge


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


#: Each declares an attribute of one kind; the other arguments are those of ``attribute``.
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


#: Declares a number that only management shows, marked for graphs.
counter: Final = partial(reported, Kind.INTEGER, graph=True, merge=Merge.SUM)


def column(
    name: str, kind: Kind, doc: str, /, *, default: Any = None, required: bool = False, **terms: Unpack[Terms]
) -> Attribute:
    """Return an attribute of a type that has no entity class."""
    return Attribute(**{**terms, "name": name, "kind": kind, "doc": doc, "default": default, "required": required})


#: The kinds of columns of running objects by the types of their values.
_KINDS: Final = {str: Kind.STRING, bool: Kind.BOOLEAN, list: Kind.LIST, dict: Kind.MAP, EntityId: Kind.ENTITY_ID}


def shown(columns: Iterable[Column[Any, Any]]) -> tuple[Attribute, ...]:
    """Return the columns of running objects as attributes of their type."""
    return tuple(
        column(
            each.name,
            Kind.ENUM if each.values else _KINDS.get(each.type, Kind.INTEGER),
            each.text,
            values=each.values,
            default=each.default,
            update=each.update,
            graph=each.graph,
            twin=each.twin,
            unit=each.unit,
            head=each.head,
            extra=each.extra,
            merge=each.merged_by,
        )
        for each in columns
        if each.name not in COMMON
    )


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
    """A type of entities in files, management and the manual."""

    #: The name without PREFIX, the key in GET-SCHEMA if it differs, and the names of sections in files.
    short: str
    doc: str
    schema_key: str = ""
    sections: tuple[str, ...] = ()
    entity: type | None = None
    #: The attributes that no entity class declares; they follow those of the class.
    columns: tuple[Attribute, ...] = ()
    #: The short names of its base types, the nearest first.
    bases: tuple[str, ...] = ()
    #: The operations of Qpid Dispatch, those inherited from the bases, and those that only trouter has.
    operations: tuple[str, ...] = ()
    inherited: tuple[str, ...] = ("READ",)
    extra_operations: tuple[str, ...] = ()
    singleton: bool = False
    deprecated: bool = False
    #: Entities of other types refer to its entities by name.
    referenced: bool = False
    #: Rows carry null for an attribute without a value; rows of other types omit it.
    core: bool = False
    #: Only trouter has the type; such types come last.
    extra: bool = False
    #: Each of several workers has a part of its entities, whose attributes are merged (``Attribute.merge``).
    parted: bool = False
    #: The reason why entities of this type are never put into service; empty if they are.
    unserved: str = ""
    #: What the router does instead; ends the warning about an entity that is not served.
    instead: str = ""
    #: The point of the table of strictness by which unknown attributes are reported, not refused.
    lenient: str = ""
    #: The points of strictness about its entities as a whole.
    points: tuple[Point, ...] = ()

    @property
    def full_name(self) -> str:
        return f"{PREFIX}.{self.short}"

    @property
    def key(self) -> str:
        """The name among the types of GET-SCHEMA."""
        return self.schema_key or self.short

    @property
    def section(self) -> str:
        """The name of sections in files; empty if there are none."""
        return self.sections[0] if self.sections else ""

    @cached_property
    def own(self) -> tuple[Attribute, ...]:
        """Its own attributes, in the order of the schema; those that only trouter has stand last."""
        rows = () if self.entity is None else all_attributes_of(self.entity)
        own = [row for row in (*rows, *self.columns) if row.name != "name"]
        return tuple(sorted(own, key=lambda row: row.extra))

    @cached_property
    def fields(self) -> tuple[Attribute, ...]:
        """The attributes that its entities have as fields: those that can be set, the name last."""
        return () if self.entity is None else attributes_of(self.entity)

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The defaults of its entities, by field."""
        return {row.field: row.default for row in self.fields}

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """Every attribute, in the order of the schema: its own, then name, identity and type."""
        return (*self.own, NAME, IDENTITY, TYPE)

    @cached_property
    def _by_name(self) -> dict[str, Attribute]:
        return {name: row for row in self.attributes for name in (*row.old_names, row.twin, row.name) if name}

    def attribute(self, name: str) -> Attribute | None:
        """Return the attribute with this name or former name; None without one."""
        return self._by_name.get(name)

    @cached_property
    def _spelled_fields(self) -> Spellings:
        return Spellings(self.fields)

    @cached_property
    def _spelled(self) -> Spellings:
        return Spellings(self.attributes)

    def field_spelled(self, spelling: str) -> Attribute | None:
        """Return the attribute of a field by a spelling of its name or former name; None without one."""
        return self._spelled_fields.find(spelling)

    def attribute_spelled(self, spelling: str) -> Attribute | None:
        """Return an attribute, reported ones too, by a spelling of its name or former name; None without one."""
        return self._spelled.find(spelling)

    @property
    def settable(self) -> tuple[Attribute, ...]:
        return tuple(row for row in self.attributes if row.settable and row is not TYPE)

    @property
    def all_operations(self) -> tuple[str, ...]:
        """Every operation that works on an entity of this type."""
        return tuple(dict.fromkeys((*self.operations, *self.inherited, *self.extra_operations)))
