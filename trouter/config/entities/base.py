"""The base classes of entities, and the decorator that makes an entity class a type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeVar

from trouter.config.problems import SourcePosition
from trouter.config.schema import BASES, EntityType, string

NOWHERE: Final = SourcePosition("(no file)")
#: The place of entities that management created.
MANAGEMENT: Final = SourcePosition("(management)")

DISTRIBUTIONS: Final = ("multicast", "closest", "balanced", "unavailable")
ROLES: Final = ("normal", "inter-router", "route-container", "edge")
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})

C = TypeVar("C", bound=type)

#: The types that ``entity`` and ``config/operational.py`` have declared.
DECLARED: Final[list[EntityType]] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """One configured object, such as a listener or an address."""

    type: ClassVar[EntityType]

    name: str = string("A name for management and logs, unique among entities.", "", update=False, unique=True)
    #: The section it was read from, for messages; no attribute.
    place: SourcePosition = field(default=NOWHERE, repr=False, compare=False)
    #: The number of equal entities before it, to distinguish it from those; no attribute.
    number: int = field(default=0, repr=False, compare=False)
    #: The attributes as they were given, by field; no attribute.
    written: Mapping[str, Any] = field(default_factory=lambda: NOTHING, repr=False, compare=False)
    #: The configuration gives it a name.
    named: bool = field(default=False, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        default = self._default_name()
        object.__setattr__(self, "named", bool(self.name) and self.name != default)
        if not self.named:
            object.__setattr__(self, "name", default)

    @property
    def given_name(self) -> str:
        """The configured name; empty if it has its default name."""
        return self.name if self.named else ""

    @property
    def identity(self) -> str:
        """The identity in management."""
        return f"{self.type.section}/{self.name}"

    def _default_name(self) -> str:
        """The name if none was given."""
        return ""

    @property
    def numbered_by(self) -> str:
        """The key of entities that numbers distinguish from each other; empty if no numbers are needed."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered(Entity):
    """An entity that a number distinguishes from others if it has no name; from management it may have neither."""

    @property
    def identity(self) -> str:
        return f"{self.type.section}/{self.number}"

    @property
    def numbered_by(self) -> str:
        return self.type.short

    def _default_name(self) -> str:
        return "" if self.place == MANAGEMENT else self.identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Single(Entity):
    """An entity of a type that has exactly one."""

    @property
    def identity(self) -> str:
        return f"{self.type.section}/None"

    def _default_name(self) -> str:
        return self.identity


def entity(short: str, doc: str, *sections: str, **settings: Any) -> Callable[[C], C]:
    """Make a class the entity of a new type; the settings are those of EntityType."""

    def declare(entity_class: C) -> C:
        settings.setdefault("bases", BASES["configuration"])
        entity_class.type = EntityType(short, doc, sections=sections, entity=entity_class, **settings)  # type: ignore[attr-defined]
        DECLARED.append(entity_class.type)  # type: ignore[attr-defined]
        return entity_class

    return declare
