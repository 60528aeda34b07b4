"""The memory of the process, and what the router does as it comes near its limit (docs/limits.md).

Above 80 percent of the limit the connections whose messages take most get no more credit, until the router keeps less
of them. Above 85 percent no client gets a further link beyond its first two. Above 90 percent the router closes
connections of the user who takes most; where no user takes much, it lets no further connection in. Each ends five
points lower.
"""

from __future__ import annotations

import ctypes
import heapq
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from trouter.core.terms import ROUTER_ROLES
from trouter.engine.ports import Budget
from trouter.records import Alarm
from trouter.wire.performatives import Error

if TYPE_CHECKING:
    from trouter.engine.connection import Connection
    from trouter.net.hub import Hub
    from trouter.telemetry.recorder import Recorder

#: Between two looks.
LOOK_S: Final = 0.5
#: In percent of the limit, where each begins; it ends at LATITUDE less.
STARVE_AT: Final = 80
REFUSE_LINKS_AT: Final = 85
REFUSE_AT: Final = 90
LATITUDE: Final = 5
_MARKS: Final = ((STARVE_AT, "warning"), (REFUSE_LINKS_AT, "warning"), (REFUSE_AT, "critical"))
#: Links that a client may have where further ones are refused: as many as a request and its answer need.
FEW_LINKS: Final = 2
#: The part of the limit that messages under way may take.
MESSAGES_PART: Final = 4
#: What a session and a link take besides the messages on them; `make bench` (chapter sessions) measures both.
SESSION_BYTES: Final = 1500
LINK_BYTES: Final = 5000
#: The part of the limit from which on a user takes much.
MUCH_PART: Final = 20
#: Connections whose users are compared, the largest of all; and those of one user that are closed at once.
COMPARED: Final = 1000
CLOSED_AT_ONCE: Final = 16
TAKES_MOST: Final = Error("amqp:resource-limit-exceeded", "the router is short of memory, and its user takes most")

_STATM: Final = Path("/proc/self/statm")
#: More than the file ever has.
_STATM_BYTES: Final = 256
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
#: What a container may have, in either form of control groups.
_CONTAINER: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))

log = logging.getLogger("trouter.SERVER")


class Consumer(Protocol):
    """An open connection, by the memory that it takes."""

    @property
    def number(self) -> int:
        """Return the number in ``[C<n>]``."""

    @property
    def engine(self) -> Connection:
        """Return the conversation, which holds its messages."""

    @property
    def role(self) -> str:
        """Return the role of the listener or connector it came through."""

    def about(self) -> dict[str, Any]:
        """Return what every record about it says: its user and vhost among others."""

    def force_close(self, error: Error) -> None:
        """Close it with ``error``."""

    def suspend_credit(self, suspended: bool) -> None:
        """Let the peer have no more credit for now, or again what it is owed."""


class Connected(Protocol):
    """The connections there are."""

    def values(self) -> Collection[Consumer]: ...


def resident_bytes() -> int:
    """Return the resident memory of the process, in octets."""
    return int(os.pread(_statm(os.getpid()), _STATM_BYTES, 0).split()[1]) * _PAGE_BYTES


@cache
def _statm(_process: int) -> int:
    """Open the file once for each process: a router that has no descriptor left still sees its memory."""
    return os.open(_STATM, os.O_RDONLY | os.O_CLOEXEC)


def available_bytes() -> int:
    """Return what the machine has, or the container if that is less."""
    available = _PAGE_BYTES * os.sysconf("SC_PHYS_PAGES")
    for path in _CONTAINER:
        with suppress(OSError, ValueError):  # there is none, or it says "max"
            available = min(available, int(path.read_text()))
    return available


class MemoryWatch:
    """One router's. ``budget`` is that of its messages; ``resident`` tells what the process takes."""

    def __init__(self, budget: Budget, recorder: Recorder, resident: Callable[[], int] = resident_bytes) -> None:
        self._budget = budget
        self._recorder = recorder
        self._resident = resident
        self._resident()  # opens its file now: later there may be no descriptor left
        self._limit = available_bytes()
        self._raised = {mark: False for mark, _ in _MARKS}
        #: Connections that get no credit.
        self._starved: dict[int, Consumer] = {}
        #: Connections that are being closed for what they take; until they are gone no others are.
        self._closing: set[int] = set()
        self.configure(None)

    def configure(self, limit: int | None) -> None:
        """Set the limit, in octets; None for what the machine or the container has."""
        self._limit = limit or available_bytes()
        self._budget.limit = self._limit // MESSAGES_PART

    @property
    def limit(self) -> int:
        return self._limit

    def totals(self) -> dict[str, int]:
        """Return what the process and the messages held take and may take, in octets."""
        budget = self._budget
        return {
            "resident": self._resident(),
            "limit": self._limit,
            "messages": budget.held,
            "messagesLimit": budget.limit,
        }

    @property
    def refuses_links(self) -> bool:
        """Return whether a client that has ``FEW_LINKS`` gets no further one."""
        return self._raised[REFUSE_LINKS_AT]

    @property
    def refusal(self) -> str:
        """Return why no client may connect now; empty if clients may."""
        full = self._raised[REFUSE_AT] and not self._closing
        return f"{REFUSE_AT} percent of maxMemoryBytes {self._limit} are taken" if full else ""

    async def run(self, connections: Connected, hub: Hub) -> None:
        """Watch the memory until cancelled."""
        while True:
            await trio.sleep(LOOK_S)
            hub.update_clock()
            if self.look(connections.values()):
                hub.flush()

    def look(self, connections: Collection[Consumer]) -> bool:
        """See how much is taken, and do what is to be done; whether any connection's credit has changed."""
        taken = self._resident()
        percent = taken * 100 // self._limit
        for mark, severity in _MARKS:
            raised = percent >= (mark - LATITUDE if self._raised[mark] else mark)
            if raised != self._raised[mark]:
                self._raised[mark] = raised
                self._log_alarm(mark, severity, percent, raised)
        self._closing &= {each.number for each in connections} if self._closing else set()
        if not self._raised[STARVE_AT]:
            return self._starve({})
        _give_back()
        if self._raised[REFUSE_AT] and not self._closing:
            self._close(connections, taken - self._limit * (REFUSE_AT - LATITUDE) // 100)
        return self._starve(_largest(connections))

    def _starve(self, wanted: dict[int, Consumer]) -> bool:
        """Give these no credit, and the others again what they are owed."""
        before, self._starved = self._starved, wanted
        for number, connection in before.items():
            if number not in wanted:
                connection.suspend_credit(False)
        for number, connection in wanted.items():
            if number not in before:
                connection.suspend_credit(True)
        return before.keys() != wanted.keys()

    def _close(self, connections: Collection[Consumer], excess_bytes: int) -> None:
        """Close connections of the user that takes most, the largest first, until they make up for the excess."""
        largest = _largest_user(connections)
        if sum(cost for cost, _ in largest) * MUCH_PART < self._limit:
            return
        for cost, each in largest[:CLOSED_AT_ONCE]:
            log.warning(
                "[C%d] Connection closed: it uses %d octets of memory, and its user uses the most of all users",
                each.number,
                cost,
            )
            self._closing.add(each.number)
            each.force_close(TAKES_MOST)
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
        self._recorder.emit(
            Alarm(
                name="memory",
                severity=severity,
                subject=f"{mark} percent",
                state="raised" if raised else "cleared",
                value=f"{percent} percent",
                limit=str(self._limit),
            )
        )


def _largest(connections: Collection[Consumer]) -> dict[int, Consumer]:
    """Return the connections of whose messages most is kept: as few as make up half of all."""
    held = [(each.engine.buffered_bytes, each) for each in connections]
    whole, taken = sum(count for count, _ in held), 0
    found: dict[int, Consumer] = {}
    for count, each in sorted(held, key=lambda pair: -pair[0]):
        if not count or taken * 2 >= whole:
            break
        taken += count
        found[each.number] = each
    return found


def cost_bytes(engine: Connection) -> int:
    """Return what a connection takes beyond an idle one: its messages, its output, its sessions and its links."""
    kept = engine.buffered_bytes + len(engine.out)
    return kept + SESSION_BYTES * engine.session_count + LINK_BYTES * engine.link_count


def _largest_user(connections: Collection[Consumer]) -> list[tuple[int, Consumer]]:
    """Return the cost in octets of each connection of the user who takes most, the largest first; routers excluded."""
    costs = [(cost_bytes(each.engine), each) for each in connections if each.role not in ROUTER_ROLES]
    users: defaultdict[tuple[object, object], list[tuple[int, Consumer]]] = defaultdict(list)
    for cost, each in heapq.nlargest(COMPARED, costs, key=lambda pair: pair[0]):
        about = each.about()
        users[about["vhost"], about["user"]].append((cost, each))
    return max(users.values(), key=lambda own: sum(cost for cost, _ in own), default=[])


def _give_back() -> None:
    """Let the C library return to the system what it keeps for later."""
    with suppress(AttributeError):  # another one than glibc
        ctypes.CDLL(None).malloc_trim(0)
