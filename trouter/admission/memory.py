"""The memory of the process, and the router's measures near its limit (docs/limits.md).

Above 80 percent of the limit the connections that hold most bytes of messages get no more credit, until they hold
less. Above 85 percent no client gets a link beyond its first two. Above 90 percent the router closes connections of the
user who takes most; if no user takes much, it accepts no further connection. Each measure ends five points lower.
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

#: Seconds between two checks.
LOOK_S: Final = 0.5
#: The percentages of the limit at which each begins; it ends at LATITUDE less.
STARVE_AT: Final = 80
REFUSE_LINKS_AT: Final = 85
REFUSE_AT: Final = 90
LATITUDE: Final = 5
_MARKS: Final = ((STARVE_AT, "warning"), (REFUSE_LINKS_AT, "warning"), (REFUSE_AT, "critical"))
#: Links of a client that are never refused: as many as a request and its answer need.
FEW_LINKS: Final = 2
#: The messages held may take 1/MESSAGES_PART of the limit.
MESSAGES_PART: Final = 4
#: Octets of a session and of a link without messages; `make bench` (chapter sessions) measures both.
SESSION_BYTES: Final = 1500
LINK_BYTES: Final = 5000
#: A user takes much from 1/MUCH_PART of the limit on.
MUCH_PART: Final = 20
#: Connections whose users are compared, the largest of all; and those of one user that are closed in one check.
COMPARED: Final = 1000
CLOSED_AT_ONCE: Final = 16
TAKES_MOST: Final = Error("amqp:resource-limit-exceeded", "the router is short of memory, and its user takes most")

_STATM: Final = Path("/proc/self/statm")
#: More than the file's size.
_STATM_BYTES: Final = 256
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
#: The memory limit of a container, in either version of control groups.
_CONTAINER: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))

log = logging.getLogger("trouter.SERVER")


class Consumer(Protocol):
    """An open connection as a consumer of memory."""

    @property
    def number(self) -> int:
        """Return the number in ``[C<n>]``."""

    @property
    def engine(self) -> Connection:
        """Return the engine's connection, which holds its messages."""

    @property
    def role(self) -> str:
        """Return the role of its listener or connector."""

    def about(self) -> dict[str, Any]:
        """Return the fields common to all records about it, user and vhost among others."""

    def force_close(self, error: Error) -> None:
        """Close it with ``error``."""

    def suspend_credit(self, suspended: bool) -> None:
        """Withhold the peer's credit, or grant again what is owed."""


class Connected(Protocol):
    """The open connections."""

    def values(self) -> Collection[Consumer]: ...


def resident_bytes() -> int:
    """Return the resident memory of the process, in bytes."""
    return int(os.pread(_statm(os.getpid()), _STATM_BYTES, 0).split()[1]) * _PAGE_BYTES


@cache
def _statm(_process: int) -> int:
    """Return a descriptor of the file, opened once per process: later there may be no descriptor left."""
    return os.open(_STATM, os.O_RDONLY | os.O_CLOEXEC)


def available_bytes() -> int:
    """Return the memory of the machine in bytes, or the container's if that is less."""
    available = _PAGE_BYTES * os.sysconf("SC_PHYS_PAGES")
    for path in _CONTAINER:
        with suppress(OSError, ValueError):  # absent, or "max"
            available = min(available, int(path.read_text()))
    return available


class MemoryWatch:
    """The memory watch of one router. ``budget`` is that of messages; ``resident`` returns the process's bytes."""

    def __init__(self, budget: Budget, recorder: Recorder, resident: Callable[[], int] = resident_bytes) -> None:
        self._budget = budget
        self._recorder = recorder
        self._resident = resident
        self._resident()  # opens its file now: later there may be no descriptor left
        self._limit = available_bytes()
        self._raised = {mark: False for mark, _ in _MARKS}
        #: Connections that get no credit.
        self._starved: dict[int, Consumer] = {}
        #: Connections that are being closed for their memory; meanwhile no others are.
        self._closing: set[int] = set()
        self.configure(None)

    def configure(self, limit: int | None) -> None:
        """Set the limit, in bytes; None for the memory of the machine or the container."""
        self._limit = limit or available_bytes()
        self._budget.limit = self._limit // MESSAGES_PART

    @property
    def limit(self) -> int:
        return self._limit

    def totals(self) -> dict[str, int]:
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

    async def run(self, connections: Connected, hub: Hub) -> None:
        """Watch the memory until cancelled."""
        while True:
            await trio.sleep(LOOK_S)
            hub.update_clock()
            if self.look(connections.values()):
                hub.flush()

    def look(self, connections: Collection[Consumer]) -> bool:
        """Check the memory and take the measures; return whether any connection's credit has changed."""
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
        """Withhold credit from these connections only; return whether the set changed."""
        before, self._starved = self._starved, wanted
        for number, connection in before.items():
            if number not in wanted:
                connection.suspend_credit(False)
        for number, connection in wanted.items():
            if number not in before:
                connection.suspend_credit(True)
        return before.keys() != wanted.keys()

    def _close(self, connections: Collection[Consumer], excess_bytes: int) -> None:
        """Close connections of the user that takes most, the largest first, until the excess is covered."""
        largest = _largest_user(connections)
        if sum(cost for cost, _ in largest) * MUCH_PART < self._limit:
            return
        for cost, each in largest[:CLOSED_AT_ONCE]:
            log.warning(
                "[C%d] Connection closed: it uses %d bytes of memory, and its user uses the most of all users",
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
    """Return the connections that hold most bytes of messages: as few as hold half of all."""
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
    """Return the bytes of a connection beyond an idle one: its messages, output, sessions and links."""
    kept = engine.buffered_bytes + len(engine.out)
    return kept + SESSION_BYTES * engine.session_count + LINK_BYTES * engine.link_count


def _largest_user(connections: Collection[Consumer]) -> list[tuple[int, Consumer]]:
    """Return the cost in bytes of each connection of the user who takes most, the largest first; routers excluded."""
    costs = [(cost_bytes(each.engine), each) for each in connections if each.role not in ROUTER_ROLES]
    users: defaultdict[tuple[object, object], list[tuple[int, Consumer]]] = defaultdict(list)
    for cost, each in heapq.nlargest(COMPARED, costs, key=lambda pair: pair[0]):
        about = each.about()
        users[about["vhost"], about["user"]].append((cost, each))
    return max(users.values(), key=lambda own: sum(cost for cost, _ in own), default=[])


def _give_back() -> None:
    """Let the C library return its free memory to the system."""
    with suppress(AttributeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)
