"""The running router as management shows it: its connections, its counts, and what its policy allows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping

from trouter import logs
from trouter._bugs import BUGS
from trouter.admission.decisions import Decisions
from trouter.admission.guard import Lockouts
from trouter.admission.memory_shares import shares
from trouter.backbone.topology import Topology
from trouter.columns.security import AlarmFacts, DenialFacts, VhostFacts
from trouter.connections.registry import Connections
from trouter.management.ports import Rights
from trouter.policy.explain import explained
from trouter.telemetry.recorder import Recorder

from .parts import ConfiguredParts


class Running:
    """What management reads of the running router; see ``management.ports.RunningRouter``."""

    def __init__(
        self, parts: ConfiguredParts, decisions: Decisions, recorder: Recorder, topology: Topology | None = None
    ) -> None:
        self._parts = parts
        self._decisions = decisions
        self._recorder = recorder
        self._topology = topology
        self._lockouts = Lockouts(parts.guard.lockout)

    def connections(self) -> Connections:
        """Return the open connections, by number."""
        return self._parts.connections

    def memory(self, by: str) -> list[dict[str, object]]:
        """Return rows of memory use in bytes: of the process, or of connections ``by`` connection, user or vhost."""
        if by == "process":
            return [{**self._parts.guard.memory.byte_totals()}]
        return shares(by, self._parts.connections.values())

    def vhost_statistics(self) -> Iterator[tuple[str, VhostFacts]]:
        """Yield each vhost with its counts, by its name."""
        return self._parts.policy.shown_vhosts()

    def rights(self, connection: int) -> Rights:
        """Return the rights in management of the user of a connection; connection 0 is the router itself."""
        return self._parts.policy.rights_of(connection)

    def may_send(self, connection: int, address: str) -> bool:
        """Return whether the user of a connection may send to an address; connection 0 is the router itself."""
        return self._parts.policy.may_send(connection, address)

    def uncovered(self, connection: int, pattern: str, direction: str) -> str | None:
        """Return an address that a link route would take and the connection's user may not use; None if none."""
        return self._parts.policy.find_uncovered(connection, pattern, direction)

    def denied(self, connection: int, what: str) -> None:
        """Record the denial of a management request, ``what``, of a connection's user."""
        self._parts.policy.deny_management(connection, what)

    def user_key(self, connection: int) -> Hashable | None:
        """Return what a user's connections, and no others, have in common; None for that of a neighbour router."""
        return self._parts.policy.user_key_of(connection)

    def tell_repeated(self, connection: int, what: str, write: Callable[[int], None]) -> None:
        """Write a line about ``what`` a connection's user may repeat; of many, ``write`` gets the number at once."""
        self._parts.policy.tell_repeated(connection, what, write)

    def topology(self) -> Topology | None:
        """Return the topology of the network; None if the router belongs to none."""
        return self._topology

    def lockouts(self) -> Lockouts:
        """Return the users and hosts whose failed logins are remembered."""
        return self._lockouts

    def decisions(self) -> Decisions:
        """Return the decisions in force about users, hosts and tenants."""
        return self._decisions

    def router_counts(self) -> Mapping[str, int]:
        """Return counters of the process, by field of ``columns.router.ProcessFacts``."""
        return {
            "logins_denied": self._recorder.denials.logins_denied,
            "turned_away": self._parts.guard.turned_away,
            "log_lines_lost": logs.book.lost,
            "bugs": BUGS.total,
        }

    def handshakes_refused(self) -> Mapping[str, int]:
        """Return the connections refused before their open, by reason."""
        return self._parts.guard.refusals.by_reason()

    def denials(self) -> Iterator[tuple[int, DenialFacts]]:
        """Yield the latest denials, by number, the newest last."""
        return self._recorder.denials.rows()

    def alarms(self) -> Iterator[tuple[int, AlarmFacts]]:
        """Yield the latest alarms, by number, the newest last."""
        return self._recorder.alarms.rows()

    def explain_policy(self, question: Mapping[str, str]) -> Mapping[str, object]:
        """Return the decision of the policy in force on the connection in ``question``, with its reasons."""
        return explained(self._parts.policy.compiled, question)
