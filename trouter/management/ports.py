"""What the management node asks of the process it lives in: its configuration, its connections, its log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Protocol

from trouter.config import Configuration, Problem
from trouter.config.entities import Entity
from trouter.config.schema import EntityType
from trouter.core.containers import Container
from trouter.engine.connection import Connection
from trouter.wire.performatives import Error

#: What GET-MEMORY groups by, besides ``address`` and nothing.
MEMORY_BY: Final = ("process", "connection", "user", "vhost")
#: What EXPLAIN-POLICY asks about.
POLICY_QUESTION: Final = ("vhost", "user", "host", "policyVhost", "source", "target")
#: The number of the connection whose request is being answered; 0 for none.
REQUESTER: Final[ContextVar[int]] = ContextVar("REQUESTER", default=0)


@dataclass(frozen=True, slots=True)
class ReloadReport:
    """What a reload did, one line of text for each entity; ``restart`` names what only a new start can change."""

    created: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    kept: int = 0
    restart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rights:
    """What a requester may do here: ``level`` is one of none, read, operate and admin, each with all before it."""

    level: str
    allow_admin_status_update: bool = True
    allow_dynamic_link_routes: bool = True


class ConnectionFacts(Protocol):
    """One connection as management sees it."""

    #: Log this connection's frames.
    trace: bool

    @property
    def number(self) -> int:
        """The number that stands as ``[C<n>]`` in the log."""

    @property
    def engine(self) -> Connection:
        """The conversation with the peer."""

    @property
    def name(self) -> str:
        """The name in management, after the other end's host and port."""

    @property
    def role(self) -> str:
        """The role of the listener or connector it came through."""

    def links(self) -> Iterator[int]:
        """Yield the identities of its links."""

    def as_container(self) -> Container:
        """Return the connection as one on which the router attaches links of its own."""

    def row(self, now_s: float) -> dict[str, object]:
        """Return the attributes of the connection type, as values of AMQP types."""

    def force_close(self, error: Error) -> None:
        """End the connection, saying why."""


class Topology(Protocol):
    """The network that the router belongs to."""

    def nodes(self) -> Iterable[tuple[str, Mapping[str, object]]]:
        """Return the routers by id, with the attributes of the type router.node."""

    def changes(self) -> Iterable[tuple[int, Mapping[str, object]]]:
        """Return what changed lately, by number, with the attributes of the type topologyChange."""

    @property
    def duplicate_ids(self) -> Sequence[str]:
        """Ids that two routers have."""

    @property
    def faults(self) -> Mapping[str, int]:
        """How often what other routers sent was not believed, by the name of the fault."""


class Holdups(Protocol):
    """What holds clients up and can be lifted: failed logins that are remembered, or decisions in force."""

    def keys(self) -> Sequence[Any]:
        """Return the keys of all entities of this type."""

    def row(self, key: Any) -> Mapping[str, object] | None:
        """Return the attributes of the entity; None when it is there no longer."""

    def find(self, identity: str) -> Any | None:
        """Return the key of an entity."""

    def forgive(self, key: Any) -> bool:
        """Let it be no more; whether it was there still."""


class Control(Protocol):
    """Changes to a running router. Each is done when the call returns, or has not happened at all."""

    @property
    def configuration(self) -> Configuration:
        """What is in force now."""

    async def create(self, kind: EntityType, name: str | None, attributes: Mapping[str, object]) -> Entity:
        """Make an entity and put it into service; ChangeRefused."""

    async def update(self, entity: Entity, attributes: Mapping[str, object]) -> Entity:
        """Change attributes of an entity, None for the default; ChangeRefused."""

    async def delete(self, entity: Entity) -> None:
        """Take an entity out of service; ChangeRefused."""

    async def reload(self) -> ReloadReport:
        """Read the configuration file again and follow it; ChangeRefused with every problem in its description."""

    def connections(self) -> Mapping[int, ConnectionFacts]:
        """Return the connections by number, ascending."""

    def memory(self, by: str) -> Sequence[Mapping[str, object]]:
        """Return what takes memory, in octets: ``process``, or by ``connection``, ``user`` or ``vhost``."""

    def status(self, entity: Entity) -> Mapping[str, object]:
        """Return what is observed of an entity in service, by attribute, such as a connector's connectionStatus."""

    def vhost_statistics(self) -> Iterable[tuple[str, Mapping[str, object]]]:
        """Yield the counters of each vhost, by its name."""

    def rights(self, connection: int) -> Rights:
        """Return what the user of a connection may do; connection 0 is the router itself."""

    def may_send(self, connection: int, address: str) -> bool:
        """Return whether the user of a connection may send to an address; connection 0 is the router itself."""

    def denied(self, connection: int, what: str) -> None:
        """Report that a requester asked for what it may not do, a line of text."""

    def topology(self) -> Topology | None:
        """Return the network, where the router belongs to one."""

    def lockouts(self) -> Holdups:
        """Return failed logins that are remembered."""

    def decisions(self) -> Holdups:
        """Return decisions about users, hosts and tenants that are in force."""

    def findings(self) -> Sequence[Problem]:
        """Return the findings about the configuration in force, the most severe first."""

    def router_counts(self) -> Mapping[str, object]:
        """Return what the process counts, by attribute of the type router."""

    def denials(self) -> Iterable[tuple[int, Mapping[str, object]]]:
        """Return what was denied lately, by number, with the attributes of the type denial."""

    def explain_policy(self, question: Mapping[str, str]) -> Mapping[str, object]:
        """Return what the policy in force decides on a connection, and why.

        The keys of ``question`` are those of POLICY_QUESTION; what is not asked is absent.
        """

    def record_change(self, operation: str, kind: str, identity: str, values: Mapping[str, str]) -> None:
        """Record a change of an entity that no configuration creates; ``values`` are the new attribute values."""


class LogEntry(Protocol):
    """One line of the log as it is remembered."""

    @property
    def module(self) -> str: ...
    @property
    def level(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def file(self) -> str | None: ...
    @property
    def line(self) -> int | None: ...
    @property
    def seconds(self) -> float:
        """When the line was logged, in seconds since 1970."""


class LogBook(Protocol):
    """What was logged lately, and how much of it there was."""

    def recent(self, limit: int = 0, module: str = "") -> Sequence[LogEntry]:
        """Return the newest ``limit`` entries (0: all that are remembered), oldest first."""

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Return events by module and level."""
