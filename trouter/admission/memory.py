"""The memory of the process, and the router's measures near its limit (docs/limits.md).

Above 80 percent of the limit the connections that hold most bytes of messages get no more credit, until they hold
less. Above 85 percent no client gets a link beyond its first two, and a user whose links and sessions take a quarter of
the limit loses connections. Above 90 percent the router closes connections of the user who takes most; if no user takes
much, it accepts no further connection, except of a few operators. Each measure ends five points lower. Memory that is
only kept for new objects counts for credit, but not for the other two.
"""

from __future__ import annotations

import heapq
import logging
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

import trio

from trouter.core.terms import ROUTER_ROLES
from trouter.engine.ports import Budget
from trouter.net.view import ConnectionView
from trouter.policy.book import SESSION_BYTES
from trouter.records import Alarm
from trouter.wire.performatives import Error

from .process_memory import available_bytes, collect, give_back, resident_bytes, used_bytes

if TYPE_CHECKING:
    from trouter.engine.connection import Connection
    from trouter.telemetry.recorder import Recorder

#: Seconds between two checks.
CHECK_S: Final = 0.5
#: The percentages of the limit at which each begins; it ends at LATITUDE less.
STARVE_AT: Final = 80
REFUSE_LINKS_AT: Final = 85
REFUSE_AT: Final = 90
LATITUDE: Final = 5
_MARKS: Final = ((STARVE_AT, "warning"), (REFUSE_LINKS_AT, "warning"), (REFUSE_AT, "critical"))
#: Links of a client that are never refused: as many as a request and its answer need.
FEW_LINKS: Final = 2
#: Octets of an unsettled delivery, at each end; its message is not held any more when all of it was sent.
DELIVERY_BYTES: Final = 220
#: The messages held may take 1/MESSAGES_PART of the limit.
MESSAGES_PART: Final = 4
#: Octets of a link without messages; `make bench` (chapter sessions) measures it.
LINK_BYTES: Final = 5000
#: Octets of a refused link that the peer has not detached.
REFUSED_LINK_BYTES: Final = 250
#: A user takes much from 1/MUCH_PART of the limit on, and too much without its messages from 1/HOGS_PART on.
MUCH_PART: Final = 20
HOGS_PART: Final = 4
#: Connections whose users are compared, the largest of all; and those of one user that are closed in one check.
COMPARED: Final = 1000
CLOSED_AT_ONCE: Final = 16
TAKES_MOST: Final = Error("amqp:resource-limit-exceeded", "the router is short of memory, and its user takes most")
SHORT_OF_MEMORY: Final = Error("amqp:resource-limit-exceeded", "the router is short of memory")
#: Operators that may connect while the router accepts no other client.
OPERATORS: Final = 8
#: Seconds between two searches for objects that only refer to each other.
COLLECT_EVERY_S: Final = 10.0

log = logging.getLogger("trouter.SERVER")


class MemoryWatch:
    """The memory watch of one router. ``budget`` is that of messages.

    ``resident`` and ``used`` return the process's bytes, with and without those kept for new objects.
    """

    def __init__(
        self,
        budget: Budget,
        recorder: Recorder,
        resident: Callable[[], int] = resident_bytes,
        used: Callable[[], int] = used_bytes,
        now: Callable[[], float] = trio.current_time,
    ) -> None:
        self._budget = budget
        self._recorder = recorder
        self._resident = resident
        self._used = used
        self._now = now
        self._collected_at_s = float("-inf")
        self._resident()  # opens its file now: later there may be no descriptor left
        self._limit = available_bytes()
        self._raised = {mark: False for mark, _ in _MARKS}
        #: Connections that get no credit.
        self._starved: dict[int, ConnectionView] = {}
        #: Connections that are being closed for their memory; meanwhile no others are.
        self._closing: set[int] = set()
        #: Connections of operators that were admitted while no other client was.
        self._operators: set[int] = set()
        self.set_limit(None)

    def set_limit(self, limit: int | None) -> None:
        """Set the limit, in bytes; None for the memory of the machine or the container."""
        self._limit = limit or available_bytes()
        self._budget.limit = self._limit // MESSAGES_PART

    @property
    def limit(self) -> int:
        return self._limit

    def byte_totals(self) -> dict[str, int]:
        """Return the bytes of process and messages, and their limits."""
        budget = self._budget
        return {
            "resident": self._resident(),
            "limit": self._limit,
            "messages": budget.held,
            "messagesLimit": budget.limit,
        }

    @property
    def refuses_links(self) -> bool:
        """True if a client with ``FEW_LINKS`` gets no further link."""
        return self._raised[REFUSE_LINKS_AT]

    @property
    def refusal(self) -> str:
        """Reason why no client may connect now; empty if clients may."""
        full = self._raised[REFUSE_AT] and not self._closing
        return f"{REFUSE_AT} percent of maxMemoryBytes {self._limit} are taken" if full else ""

    def refusal_reason(self, busy: bool) -> str:
        """Return why a client may not connect, even if it should be an operator; empty if it may.

        ``busy`` says that its host has logins under way, or that there are many.
        """
        return self.refusal if busy or len(self._operators) >= OPERATORS else ""

    def may_stay(self, number: int, *, operator: bool) -> bool:
        """Return whether a client that has logged in may stay: any client, or a few operators if others may not."""
        if not self.refusal:
            return True
        admitted = operator and len(self._operators) < OPERATORS
        if admitted:
            self._operators.add(number)
        return admitted

    def check_memory(self, connections: Collection[ConnectionView]) -> bool:
        """Check the memory and take the measures; return whether any connection's credit has changed.

        To be called every ``CHECK_S`` seconds.
        """
        resident, taken = self._measure_bytes()
        for mark, severity in _MARKS:
            percent = (resident if mark == STARVE_AT else taken) * 100 // self._limit
            raised = percent >= (mark - LATITUDE if self._raised[mark] else mark)
            if raised != self._raised[mark]:
                self._raised[mark] = raised
                self._log_alarm(mark, severity, percent, raised)
        for numbers in (self._closing, self._operators):
            if numbers:
                numbers &= {each.number for each in connections}
        if not self._raised[STARVE_AT]:
            return self._withhold_credit({})
        if self._raised[REFUSE_AT] and not self._closing:
            self._close_largest(connections, cost_bytes, MUCH_PART, taken - self._limit * (REFUSE_AT - LATITUDE) // 100)
        elif self._raised[REFUSE_LINKS_AT] and not self._closing:
            excess_bytes = taken - self._limit * (REFUSE_LINKS_AT - LATITUDE) // 100
            self._close_largest(connections, standing_bytes, HOGS_PART, excess_bytes)
        return self._withhold_credit(_largest(connections))

    def _measure_bytes(self) -> tuple[int, int]:
        """Return the resident bytes, and those in use, after returning free memory if the limit is near."""
        resident = self._resident()
        if resident * 100 < self._limit * (STARVE_AT - LATITUDE):
            return resident, resident
        give_back()
        taken = self._used()
        if taken * 100 >= self._limit * REFUSE_AT and self._now() - self._collected_at_s >= COLLECT_EVERY_S:
            self._collected_at_s = self._now()
            collect()
            taken = self._used()
        return self._resident(), taken

    def _withhold_credit(self, wanted: dict[int, ConnectionView]) -> bool:
        """Withhold credit from these connections only; return whether the set changed."""
        before, self._starved = self._starved, wanted
        for number, connection in before.items():
            if number not in wanted:
                connection.suspend_credit(False)
        for number, connection in wanted.items():
            if number not in before:
                connection.suspend_credit(True)
        return before.keys() != wanted.keys()

    def _close_largest(
        self,
        connections: Collection[ConnectionView],
        cost_of: Callable[[Connection], int],
        part: int,
        excess_bytes: int,
    ) -> None:
        """Close connections of the user that takes most, the largest first, until the excess is covered.

        Close none if ``cost_of`` the user's connections is less than 1/``part`` of the limit.
        """
        largest = _largest_user(connections, cost_of)
        if sum(cost for cost, _ in largest) * part < self._limit:
            return
        for cost, each in largest[:CLOSED_AT_ONCE]:
            log.warning(
                "[C%d] Connection closed: it uses %d bytes of memory, and its user uses the most of all users",
                each.number,
                cost,
            )
            self._closing.add(each.number)
            each.close_at_once(TAKES_MOST)
            excess_bytes -= cost
            if excess_bytes <= 0:
                return

    def _log_alarm(self, mark: int, severity: str, percent: int, raised: bool) -> None:
        log.log(
            logging.WARNING if raised else logging.INFO,
            "ALARM memory %s: %d percent of maxMemoryBytes %d are in use, the mark is %d percent",
            "raised" if raised else "cleared",
            percent,
            self._limit,
            mark,
        )
        self._recorder.alarm(
            Alarm(
                name="memory",
                severity=severity,
                subject=f"{mark} percent",
                state="raised" if raised else "cleared",
                value=f"{percent} percent",
                limit=str(self._limit),
            )
        )


def _largest(connections: Collection[ConnectionView]) -> dict[int, ConnectionView]:
    """Return the connections that hold most bytes of messages: as few as hold half of all."""
    held = [(each.engine.buffered_bytes, each) for each in connections]
    whole, taken = sum(count for count, _ in held), 0
    found: dict[int, ConnectionView] = {}
    for count, each in sorted(held, key=lambda pair: -pair[0]):
        if not count or taken * 2 >= whole:
            break
        taken += count
        found[each.number] = each
    return found


def cost_bytes(engine: Connection) -> int:
    """Return the bytes of a connection beyond an idle one: its messages, output, sessions, links and deliveries."""
    return engine.buffered_bytes - engine.kept_bytes + len(engine.out) + standing_bytes(engine)


def standing_bytes(engine: Connection) -> int:
    """Return the bytes that a peer keeps in the router as long as it wants.

    They are of its open, its sessions and links, and of the deliveries that are not settled.
    """
    links_bytes = LINK_BYTES * engine.link_count + REFUSED_LINK_BYTES * engine.refused_count
    rings = [each.deliveries for each in engine.sessions()]
    unsettled = sum(each.incoming.count + each.outgoing.count for each in rings)
    return engine.kept_bytes + SESSION_BYTES * engine.session_count + links_bytes + DELIVERY_BYTES * unsettled


def _largest_user(
    connections: Collection[ConnectionView], cost_of: Callable[[Connection], int]
) -> list[tuple[int, ConnectionView]]:
    """Return the cost in bytes of each connection of the user who takes most, the largest first; routers excluded."""
    costs = [(cost_of(each.engine), each) for each in connections if each.facts.listener.role not in ROUTER_ROLES]
    users: defaultdict[tuple[object, object], list[tuple[int, ConnectionView]]] = defaultdict(list)
    for cost, each in heapq.nlargest(COMPARED, costs, key=lambda pair: pair[0]):
        about = each.describe_connection()
        users[about["vhost"], about["user"]].append((cost, each))
    return max(users.values(), key=lambda own: sum(cost for cost, _ in own), default=[])
