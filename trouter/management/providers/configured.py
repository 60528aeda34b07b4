"""The configured entities, from the file or created at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from weakref import ref

from trouter.config import Configuration
from trouter.config.changes import row as entity_row
from trouter.config.entities import Entity
from trouter.config.schema import EntityType
from trouter.management.ports import ControlPort
from trouter.wire.types import UInt, ULong

from .base import Provider, Row
from .routing import number_of


class Configured(Provider):
    """The configured entities of one type; a key is the identity in the configuration."""

    def __init__(self, kind: EntityType, control: ControlPort) -> None:
        super().__init__(kind)
        self._control = control

    def entities(self) -> Sequence[Entity]:
        """Return the entities in the configuration in force."""
        return self._control.configuration.of(self.kind.short)

    def entity(self, key: str) -> Entity | None:
        """Return the entity of a key; None if the configuration in force has none."""
        found = self._control.configuration.find(key)
        return found if found is not None and found.type is self.kind else None

    def keys(self) -> Sequence[str]:
        return [entity.identity for entity in self.entities()]

    def row(self, key: str) -> Row | None:
        entity = self.entity(key)
        return None if entity is None else self.row_of(entity)

    def row_of(self, entity: Entity) -> dict[str, object]:
        """Return all attributes of an entity, with the observed ones."""
        return {**entity_row(entity), **self._control.status(entity)}

    def by_identity(self, identity: str) -> str | None:
        return None if self.entity(identity) is None else identity

    def by_name(self, name: str) -> Sequence[str]:
        return [entity.identity for entity in self.entities() if entity.name == name]


class Routing(Configured):
    """Configured addresses, routes and exchanges, which have two identities.

    Among their own type it is a number, from the counter of links; among all entities, that of the configuration.
    """

    def __init__(self, kind: EntityType, control: ControlPort, next_number: Callable[[], int]) -> None:
        super().__init__(kind, control)
        self._next_number = next_number
        self._seen: ref[Configuration] | None = None
        self._numbers: dict[str, int] = {}
        self._keys: dict[int, str] = {}
        self._count()

    def _count(self) -> None:
        """Give new entities their numbers, in the order of the configuration."""
        configuration = self._control.configuration
        if self._seen is None or self._seen() is not configuration:
            self._seen = ref(configuration)  # does not keep an old configuration alive
            keys = [entity.identity for entity in self.entities()]
            self._numbers = {key: self._numbers.get(key) or self._next_number() for key in keys}
            self._keys = {number: key for key, number in self._numbers.items()}

    def keys(self) -> Sequence[str]:
        self._count()
        return list(self._numbers)

    def named_keys(self) -> Sequence[str]:
        return [entity.identity for entity in self.entities() if entity.name]

    def row(self, key: str) -> Row | None:
        entity = self.entity(key)
        if entity is None:
            return None
        self._count()
        own = self.row_of(entity)
        observe = _OBSERVED.get(self.kind.short)
        return {
            **own,
            **({} if observe is None else observe(own)),
            **self._unserved(entity, own),
            "identity": str(self._numbers[key]),
        }

    def _unserved(self, entity: Entity, row: Row) -> dict[str, object]:
        """Return, as last error, why a route is not in service, if it has no error of its own."""
        if "lastError" not in row or row["lastError"] is not None:
            return {}
        return {"lastError": "; ".join(self._control.configuration.unserved(entity)) or None}

    def plain_row(self, key: str) -> Row | None:
        return super().row(key)

    def by_identity(self, identity: str) -> str | None:
        self._count()
        return super().by_identity(identity) or self._keys.get(number_of(identity))


def _address(row: Mapping[str, Any]) -> dict[str, object]:
    return {"priority": -1 if row.get("priority") is None else row["priority"]}


def _route(row: Mapping[str, Any]) -> dict[str, object]:
    return {"operStatus": row.get("operStatus") or "inactive"}


def _counted(*names: str) -> Callable[[Mapping[str, Any]], dict[str, object]]:
    def count(row: Mapping[str, Any]) -> dict[str, object]:
        return {name: row.get(name) or (UInt(0) if name == "bindingCount" else ULong(0)) for name in names}

    return count


#: The attributes that the core observes, with values for entities without observations.
_OBSERVED: Final[dict[str, Callable[[Mapping[str, Any]], dict[str, object]]]] = {
    "router.config.address": _address,
    "router.config.linkRoute": _route,
    "router.config.autoLink": _route,
    "router.config.exchange": _counted(
        "bindingCount", "receivedCount", "droppedCount", "forwardedCount", "divertedCount"
    ),
    "router.config.binding": _counted("matchedCount"),
}
