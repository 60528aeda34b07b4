"""All types of entities, in the order in which management lists them: Qpid Dispatch's, then trouter's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from trouter.config import operational
from trouter.config.entities import (
    GROUP_SETTINGS,
    AddressEntity,
    AuthServicePluginEntity,
    AutoLinkEntity,
    BindingEntity,
    ConnectorEntity,
    ConsoleEntity,
    DummyEntity,
    Entity,
    ExchangeEntity,
    LinkRouteEntity,
    ListenerEntity,
    LogEntity,
    PolicyEntity,
    RecordLogEntity,
    RouterEntity,
    SslProfileEntity,
    VhostEntity,
)
from trouter.config.entities.base import DECLARED
from trouter.config.schema import EntityType, same_name

__all__ = ["CONFIGURED", "TYPES", "Entity", "type_named", "type_of_section"]

_LISTED: Final[tuple[EntityType, ...]] = (
    operational.ENTITY,
    operational.NODE,
    operational.MANAGEMENT_NODE,
    operational.CONFIGURATION,
    operational.OPERATIONAL,
    RouterEntity.type,
    SslProfileEntity.type,
    AuthServicePluginEntity.type,
    ListenerEntity.type,
    ConnectorEntity.type,
    LogEntity.type,
    operational.LOG_STATS,
    AddressEntity.type,
    LinkRouteEntity.type,
    AutoLinkEntity.type,
    ExchangeEntity.type,
    BindingEntity.type,
    operational.LINK,
    operational.ADDRESS,
    operational.ROUTER_NODE,
    operational.CONNECTION,
    operational.ALLOCATOR,
    ConsoleEntity.type,
    PolicyEntity.type,
    VhostEntity.type,
    GROUP_SETTINGS,
    operational.VHOST_STATS,
    DummyEntity.type,
    operational.CONNECTION_LINK_ROUTE,
    RecordLogEntity.type,
    operational.AUTH_LOCKOUT,
    operational.DECISION,
    operational.FINDING,
    operational.TOPOLOGY_CHANGE,
    operational.DENIAL,
    operational.ALARM,
)


def types_of(declared: Iterable[EntityType]) -> tuple[EntityType, ...]:
    """Return all types: those with a place above, then the others that are ``declared``."""
    return (*_LISTED, *(kind for kind in declared if kind not in _LISTED))


TYPES: Final = types_of(DECLARED)

#: The types that have sections in files.
CONFIGURED: Final = tuple(kind for kind in TYPES if kind.sections)

_BY_SECTION: Final = {name: kind for kind in reversed(CONFIGURED) for name in kind.sections}
_BY_NAME: Final = {name: kind for kind in TYPES for name in (kind.short, kind.full_name)}


def type_of_section(spelling: str) -> EntityType | None:
    """Return the type by a spelling of the name of its sections; None without one."""
    kind = _BY_SECTION.get(spelling)
    return kind or next((kind for name, kind in _BY_SECTION.items() if same_name(spelling, name)), None)


def type_named(text: str) -> EntityType | None:
    """Return the type with this short or full name; None without one."""
    return _BY_NAME.get(text)
