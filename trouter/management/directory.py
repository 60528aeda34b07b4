"""The router's entities, by type, name and identity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from trouter.columns.network import CHANGE, NODE
from trouter.columns.process import ALLOCATOR, FINDING, LOG_STATS
from trouter.columns.rows import Rows
from trouter.columns.security import ALARM, DECISION, DENIAL, LOCKOUT, VHOST
from trouter.config.schema import EntityType
from trouter.config.strictness import POINTS
from trouter.config.types import TYPES
from trouter.core.router import Router
from trouter.core.tenants import Tenant

from .kinds import MANAGEMENT, columns_of, descendants_of
from .ports import ControlPort, LogBookPort
from .providers import process, routing
from .providers.base import Listed, Nothing, Provider
from .providers.configured import Configured, Routing
from .providers.owned import OWNED
from .providers.parted import AT_ONE, WORKER, WorkerPart, part_of
from .providers.scoped import ConnectionLinkRoutes
from .requests import shown
from .status import NOT_FOUND, REASONS, bad_request, not_found


@dataclass(frozen=True, slots=True)
class Sources:
    """The objects that the providers read."""

    router: Router
    control: ControlPort
    book: LogBookPort
    now: Callable[[], float]


#: Link routes that connections create for themselves.
SCOPED: Final = "router.connection.linkRoute"
_ROUTING: Final = ("address", "linkRoute", "autoLink", "exchange", "binding")
#: Types that the listing of everything omits: they have too many entities, which come and go.
_PASSING: Final = frozenset(
    {"router.link", "router.address", "connection", "authLockout", "decision", "finding", "denial", "alarm", SCOPED}
)

Maker = Callable[[EntityType, Sources], Provider]
#: The providers of types that are more than what is configured.
_MAKERS: Final[dict[str, Maker]] = {
    **dict.fromkeys(
        (f"router.config.{each}" for each in _ROUTING),
        lambda kind, of: Routing(kind, of.control, of.router.next_identity),
    ),
    "router": lambda kind, of: process.RouterItself(kind, of.router, of.control, of.now),
    "router.link": lambda kind, of: routing.Links(kind, of.router),
    "router.address": lambda kind, of: routing.Addresses(kind, of.router),
    SCOPED: lambda kind, of: ConnectionLinkRoutes(kind, of.router),
    "connection": lambda kind, of: routing.OpenConnections(kind, of.control, of.now),
    "management": lambda kind, _: process.ManagementNode(kind),
    "logStats": lambda kind, of: Listed(
        kind, Rows(LOG_STATS, None), partial(process.log_counts, of.book), has_names=True
    ),
    "allocator": lambda kind, of: Listed(kind, Rows(ALLOCATOR, None), partial(process.pools, of.router, of.control)),
    "router.node": lambda kind, of: Listed(kind, Rows(NODE, None), partial(process.nodes, of.control)),
    "topologyChange": lambda kind, of: Listed(kind, Rows(CHANGE, None), partial(process.changes, of.control)),
    "authLockout": lambda kind, of: process.Lifted(kind, Rows(LOCKOUT, None), of.control.running.lockouts),
    "decision": lambda kind, of: process.Lifted(kind, Rows(DECISION, None), of.control.running.decisions),
    "finding": lambda kind, of: Listed(kind, Rows(FINDING, POINTS), partial(process.findings, of.control)),
    "denial": lambda kind, of: Listed(kind, Rows(DENIAL, None), of.control.running.denials),
    "alarm": lambda kind, of: Listed(kind, Rows(ALARM, None), of.control.running.alarms),
    "vhostStats": lambda kind, of: Listed(kind, Rows(VHOST, None), of.control.running.vhost_statistics),
}


def _provider(kind: EntityType, sources: Sources, part: WorkerPart | None) -> Provider:
    provider = _alone(kind, sources)
    return provider if part is None else part_of(kind, provider, part, sources.router, sources.control)


def _alone(kind: EntityType, sources: Sources) -> Provider:
    make = _MAKERS.get(kind.short)
    if make is not None:
        return make(kind, sources)
    return Configured(kind, sources.control) if kind.sections else Nothing(kind)


def _own(kind: EntityType, sources: Sources, tenant: Tenant, part: WorkerPart | None) -> Provider:
    if kind.short in OWNED:
        return OWNED[kind.short](_provider(kind, sources, part), tenant, sources.router, sources.control)
    return _provider(kind, sources, part) if kind.short == MANAGEMENT else Nothing(kind)


@dataclass(frozen=True, slots=True)
class FoundEntity:
    """One entity: its provider, and its key in it."""

    provider: Provider
    key: Any

    @property
    def kind(self) -> EntityType:
        return self.provider.kind


class Directory:
    """The providers of all types, in the order of GET-TYPES."""

    def __init__(self, sources: Sources, tenant: Tenant | None = None, part: WorkerPart | None = None) -> None:
        """Make the providers; for a ``tenant`` they have only the tenant's own entities, and the node itself.

        ``part``: they have them as a part of a router with several workers.
        """
        self.part = part
        self._providers = {
            kind.short: _provider(kind, sources, part) if tenant is None else _own(kind, sources, tenant, part)
            for kind in TYPES
        }

    def columns_of(self, kind: EntityType | None) -> tuple[str, ...]:
        """Return the columns of a QUERY that names none."""
        at_one = self.part is not None and kind is not None and kind.short in AT_ONE
        return (*columns_of(kind), WORKER) if at_one else columns_of(kind)

    def provider(self, kind: EntityType) -> Provider:
        """Return the provider of the entities of exactly this type."""
        return self._providers[kind.short]

    def providers(self, base: EntityType | None, *, passing: bool = True) -> Iterator[Provider]:
        """Yield the providers of a type and of those that extend it; ``passing`` includes types that come and go."""
        for kind in descendants_of(base):
            if passing or kind.short not in _PASSING:
                yield self._providers[kind.short]

    def find(self, kind: EntityType | None, name: str, identity: str) -> FoundEntity:
        """Return the entity that a request names; Refusal if there is none, or if name and identity disagree."""
        found = None
        if identity:
            found = self._only(kind, self._identified(identity), f"identity={identity}")
        if name:
            named = self._only(kind, self._named(kind, name), f"name={name}")
            if found is not None and found != named:
                raise bad_request(f"name={shown(name)} and identity={shown(identity)} are two different entities")
            found = named
        if found is None:
            raise bad_request("No name or identity provided")
        return found

    def exists(self, text: str) -> bool:
        """Return whether ``text`` is the name of an entity of any type."""
        return any(True for _ in self._named(None, text))

    def _identified(self, identity: str) -> Iterator[FoundEntity]:
        for provider in self._providers.values():
            key = provider.by_identity(identity)
            if key is not None:
                yield FoundEntity(provider, key)

    def _named(self, kind: EntityType | None, name: str) -> Iterator[FoundEntity]:
        rooted = [provider for provider in self._providers.values() if provider.rooted]
        requested = [] if kind is None else [self._providers[each.short] for each in descendants_of(kind)]
        for provider in dict.fromkeys((*requested, *rooted)):
            for key in provider.by_name(name):
                yield FoundEntity(provider, key)

    def _only(self, kind: EntityType | None, candidates: Iterable[FoundEntity], name: str) -> FoundEntity:
        wanted = {each.short for each in descendants_of(kind)}
        every = list(candidates)
        fitting = [each for each in every if each.kind.short in wanted]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            types = ", ".join(sorted({each.kind.short for each in fitting}))
            raise bad_request(f"{len(fitting)} entities have {shown(name)} ({types}): give the type, or the identity")
        other = next((each for each in every if each.provider.rooted and kind is not None), None)
        if other is not None and kind is not None:
            raise bad_request(f"{shown(name)} is a {other.kind.full_name}, not a {kind.full_name}")
        raise not_found(REASONS[NOT_FOUND] if kind is not None and kind.core else f"No entity with {shown(name)}")
