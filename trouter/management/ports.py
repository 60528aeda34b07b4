"""What the management node needs of its process: the configuration, the connections, the log."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Protocol

from trouter.columns.network import NodeFacts
from trouter.columns.router import UplinkFacts
from trouter.columns.security import AlarmFacts, DenialFacts, VhostFacts
from trouter.config import Configuration, Problem
from trouter.config.entities import Entity
from trouter.config.schema import EntityType
from trouter.net.view import ConnectionView

#: The number of the connection whose request is being answered; 0 for none.
REQUESTER: Final[ContextVar[int]] = ContextVar("REQUESTER", default=0)
#: What records say of the requester's connection if it is at another worker.
REQUESTER_ELSEWHERE: Final[ContextVar[Mapping[str, object] | None]] = ContextVar("REQUESTER_ELSEWHERE", default=None)


@dataclass(frozen=True, slots=True)
class ReloadReport:
    """The result of a reload, one line of text for each entity; ``restart`` names what only a new start can change."""

    created: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    kept: int = 0
    restart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanReport:
    """What a configuration would change, None if it cannot be used at all, and the findings about it."""

    plan: ReloadReport | None
    findings: tuple[Problem, ...] = ()
    #: Why the router would refuse it as a change over the network, sentences; and the digest of the state that this
    #: report holds for.
    refusals: tuple[str, ...] = ()
    state: str = ""
    #: The text is that of the configuration file.
    is_same: bool = False
    #: The id of the change that is open there; empty for none.
    open_change: str = ""


#: The part of a configuration that may be changed without the others.
POLICY: Final = "policy"

#: How far an open change came: the file is the old one, the new one, or one that was edited since.
BEGUN: Final = "begun"
MADE: Final = "made"
EDITED: Final = "edited"


@dataclass(frozen=True, slots=True)
class OpenChange:
    """A change of the configuration over the network that is neither confirmed nor taken back.

    by: who ordered it, as the command says. user, host: of the connection by which the order came. at_s: when, in
    seconds since 1970. routers: the ids of all routers that it is of. state: BEGUN, MADE or EDITED.
    """

    id: str
    by: str
    user: str
    host: str
    at_s: int
    routers: tuple[str, ...]
    state: str


#: The states of a router as to draining: it takes clients; their connections are being closed; none is left.
SERVING: Final = "serving"
DRAINING: Final = "draining"
DRAINED: Final = "drained"


@dataclass(frozen=True, slots=True)
class DrainReport:
    """The state of a drain.

    total: the client connections when it began. closed: those that the router has closed. left: those still open.
    over_s: the stated time. for_s: the seconds since it began.
    """

    state: str
    total: int = 0
    closed: int = 0
    left: int = 0
    over_s: float = 0.0
    for_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of a requester: ``level`` is one of none, read, operate and admin, each including those before it."""

    level: str
    allow_admin_status_update: bool = True
    allow_dynamic_link_routes: bool = True


class TopologyPort(Protocol):
    """The router's network."""

    def nodes(self) -> Iterable[tuple[str, NodeFacts]]:
        """Return the routers by id."""

    def changes(self) -> Iterable[tuple[int, object]]:
        """Return the last changes, by number, each as the columns of topologyChange read it."""

    @property
    def duplicate_ids(self) -> Sequence[str]:
        """Return the ids that two routers have."""

    @property
    def faults(self) -> Mapping[str, int]:
        """Return the counts of faults of other routers, by name."""


class Holdups(Protocol):
    """Entities that restrict clients and can be lifted: failed logins, or decisions in force."""

    def list_keys(self) -> Sequence[Any]:
        """Return the keys of all entities of this type."""

    def identity_of(self, key: Any) -> str:
        """Return the identity of an entity, unique to it."""

    def find_facts(self, key: Any) -> object | None:
        """Return what the columns of the type are read from; None if the entity no longer exists."""

    def lift_holdup(self, key: Any) -> bool:
        """Remove the entity; return whether it existed."""


class RunningRouter(Protocol):
    """What management shows of a running router besides its configuration, and the rights of its users."""

    def connections(self) -> Mapping[int, ConnectionView]:
        """Return the connections by number, ascending."""

    def memory(self, by: str) -> Sequence[Mapping[str, object]]:
        """Return the memory in bytes: of the ``process``, or by ``connection``, ``user`` or ``vhost``."""

    def vhost_statistics(self) -> Iterable[tuple[str, VhostFacts]]:
        """Yield each vhost with its counts, by its name."""

    def rights(self, connection: int) -> Rights:
        """Return the rights of a connection's user; connection 0 is the router itself."""

    def may_send(self, connection: int, address: str) -> bool:
        """Return whether the user of a connection may send to an address; connection 0 is the router itself."""

    def uncovered(self, connection: int, pattern: str, direction: str) -> str | None:
        """Return an address that a link route of a connection would take and its user may not use; None if none.

        PatternError if the pattern is invalid, or too complex for an answer.
        """

    def denied(self, connection: int, what: str) -> None:
        """Report that a requester requested more than its rights allow; ``what`` is a line of text."""

    def user_key(self, connection: int) -> Hashable | None:
        """Return what a user's connections, and no others, have in common; None for that of a neighbour router."""

    def tell_repeated(self, connection: int, what: str, write: Callable[[int], None]) -> None:
        """Write a line about ``what`` a requester may repeat at will: call ``write`` with 1, or later with the number.

        The number is of such events of the requester's user, of which this is the first.
        """

    def topology(self) -> TopologyPort | None:
        """Return the network; None for a standalone router."""

    def lockouts(self) -> Holdups:
        """Return the stored failed logins."""

    def decisions(self) -> Holdups:
        """Return the decisions in force about users, hosts and tenants."""

    def router_counts(self) -> Mapping[str, int]:
        """Return the counts of the process, by field of ``columns.router.ProcessFacts``."""

    def handshakes_refused(self) -> Mapping[str, int]:
        """Return the connections refused before their open, by reason."""

    def denials(self) -> Iterable[tuple[int, DenialFacts]]:
        """Return the last denials, by number."""

    def alarms(self) -> Iterable[tuple[int, AlarmFacts]]:
        """Return the last alarms, by number."""

    def explain_policy(self, question: Mapping[str, str]) -> Mapping[str, object]:
        """Return what the policy in force decides on a connection, and why.

        The keys of ``question`` are names of arguments of EXPLAIN-POLICY.
        """


class NetworkChangesPort(Protocol):
    """Changes of the configuration as a whole that come over the network, each of several routers at once."""

    async def open_change(self) -> OpenChange | None:
        """Return the change that is open; None without one. ChangeRefused if it cannot be read."""

    async def check_policy(self, text: str, name: str, expectations: str) -> PlanReport:
        """Return what the vhosts, and the section policy, in ``text`` would change in the place of those in the file.

        ``name`` is what the findings call it. ``expectations``: the text of a file of them, or none; those that the
        policy would not meet here are refusals. ChangeRefused if the file cannot be read.
        """

    async def apply(
        self,
        id: str,  # noqa: A002
        by: str,
        routers: tuple[str, ...],
        text: str,
        state: str,
        part: str,
    ) -> ReloadReport:
        """Put ``text`` into force and into the configuration file, and leave the change open; ChangeRefused.

        ``part``: POLICY if it has only that, and all else stays; empty for a whole configuration.
        It is refused if ``state`` is not that of the router now, which a check has reported. The change that is open
        already with this id and text is not made again.
        """

    async def confirm(self, id: str) -> OpenChange:  # noqa: A002
        """End an open change as it is, and return it; ChangeRefused."""

    async def revert(self, id: str) -> OpenChange:  # noqa: A002
        """Put into force and into the file what was there before an open change, and return the change as it was.

        ChangeRefused, and nothing changed.
        """


class ControlPort(Protocol):
    """Changes to a running router. Each is done completely when the call returns, or not at all."""

    @property
    def running(self) -> RunningRouter:
        """Return the router that runs with the configuration in force."""

    @property
    def configuration(self) -> Configuration:
        """Return the configuration in force."""

    @property
    def network_changes(self) -> NetworkChangesPort:
        """Return the changes that come over the network."""

    @property
    def behind(self) -> Mapping[int, str]:
        """Return the workers that serve with another configuration, by number, and why; none if there are no others."""

    async def create(self, kind: EntityType, name: str | None, attributes: Mapping[str, object]) -> Entity:
        """Create an entity and put it into service; ChangeRefused."""

    async def update(self, entity: Entity, attributes: Mapping[str, object]) -> Entity:
        """Change attributes of an entity, None for the default; ChangeRefused."""

    async def delete(self, entity: Entity) -> None:
        """Take an entity out of service; ChangeRefused."""

    async def reload(self) -> ReloadReport:
        """Apply the configuration file again; ChangeRefused with every problem in its description."""

    async def check(self, text: str, name: str, *, may_change: bool) -> PlanReport:
        """Return what the configuration in ``text`` would change, and the findings about it; nothing changes.

        ``name`` is what the findings call it; the text is JSON if that ends in `.json`. ``may_change``: the requester
        may have the change made; for others no password and no place is judged that the router does not use already.
        """

    async def start_drain(self, over_s: float) -> DrainReport:
        """Take no new clients, and close the connections of clients over ``over_s`` seconds; ChangeRefused."""

    async def cancel_drain(self) -> DrainReport:
        """Take clients again, and close no more connections; ChangeRefused if a listener cannot be opened again."""

    def drain_report(self) -> DrainReport:
        """Return the state of the drain."""

    def status(self, entity: Entity) -> Mapping[str, object]:
        """Return the observed attributes of an entity in service, such as a connector's connectionStatus."""

    def uplink(self) -> UplinkFacts | None:
        """Return the state of an edge router's uplink; None on other routers."""

    def findings(self) -> Sequence[Problem]:
        """Return the findings about the configuration in force, the most severe first."""

    def record_change(self, operation: str, kind: str, identity: str, values: Mapping[str, str]) -> None:
        """Record a change of an entity that no configuration creates; ``values`` are the new attribute values."""


class LogEntry(Protocol):
    """One remembered line of the log."""

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
        """Return when the line was logged, in seconds since 1970."""


class LogBookPort(Protocol):
    """The remembered lines of the log, and the counts of all lines."""

    def recent(self, limit: int = 0, module: str = "") -> Sequence[LogEntry]:
        """Return the newest ``limit`` entries (0: all that are remembered), oldest first."""

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """Return the number of events by module and level."""
