"""Drains the router on an operator's order: it stays up, takes no new clients, and closes its clients' connections
one after the other, evenly over a stated time.

Before a connection is closed its peer gets no new messages and no credit, until what is under way is settled, or for
``drainTimeoutSeconds`` at most. Links to other routers stay, except those of edge routers that dialled this one; what
the others send each other goes around this router, where there is another way.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Final

import trio

from trouter import logs
from trouter._bugs import BUGS
from trouter.config import ListenerEntity, RouterEntity
from trouter.config.problems import Problem, Severity
from trouter.connections.registry import Connections
from trouter.management.ports import DRAINED, DRAINING, SERVING, DrainReport
from trouter.net.view import ConnectionView
from trouter.wire.performatives import Error

#: Seconds between two looks at the connections that leave, and once all have left.
LOOK_S: Final = 0.05
CALM_LOOK_S: Final = 0.5
FAREWELL: Final = Error("amqp:connection:forced", "the router is draining: connect to another one")

log = logging.getLogger("trouter.SERVER")


class Drain:
    """The drain of one router: whether it is under way, and the connections that leave."""

    def __init__(
        self,
        connections: Connections,
        flush: Callable[[], None],
        patience_s: Callable[[], float],
        set_leaving: Callable[[bool], None],
    ) -> None:
        """``patience_s`` returns the seconds that a connection may take to settle its deliveries.

        ``set_leaving`` is called with whether the router drains.
        """
        self._set_leaving = set_leaving
        self._connections = connections
        self._flush = flush
        self._patience_s = patience_s
        self._began = trio.Event()
        self.active = False
        #: The listeners are being opened again.
        self.reopens = False
        self._done = False
        self._over_s = 0.0
        self._started_s = 0.0
        self._ends_s = 0.0
        #: The time at which the next connection begins to leave.
        self._next_s = 0.0
        #: Connections at the beginning, and those closed since.
        self._total = 0
        self._closed = 0
        #: Connections that settle what is under way, each with the time at which it is closed in any case.
        self._leaving: dict[ConnectionView, float] = {}
        #: Connections of operators who ordered the drain: they may watch it.
        self._spared: set[int] = set()
        #: When it was last started or cancelled, by a clock that all processes of the machine share; 0 for never.
        self.ordered_s = 0.0

    def start(self, over_s: float, watcher: int, ordered_s: float | None = None) -> None:
        """Close all clients' connections over ``over_s`` seconds from now; spare the connection ``watcher``.

        A drain that is under way gets the new time for the connections that are left. ``ordered_s`` is when it was
        ordered, in the seconds of ``time.monotonic``; None for now.
        """
        now_s = trio.current_time()
        self.ordered_s = time.monotonic() if ordered_s is None else ordered_s
        self._spared.add(watcher)
        if not self.active:
            self._started_s, self._closed, self._done = now_s, 0, False
            self._leaving.clear()
            self._set_leaving(True)
        self.active = True
        waiting = len(self._waiting())
        self._total = self._closed + len(self._leaving) + waiting
        self._over_s, self._ends_s = over_s, now_s + over_s
        self._next_s = now_s + over_s / max(waiting, 1)
        log.log(logs.NOTICE, "Draining: %d client connections are closed over %g s", waiting, over_s)
        self._began.set()

    def cancel(self) -> None:
        """Close no more connections; those that settle what is under way are closed in their time."""
        if self.active:
            log.log(logs.NOTICE, "The drain was cancelled after %d closed connections", self._closed)
            self._set_leaving(False)
        self.active = self._done = False
        self.ordered_s = time.monotonic()
        self._spared.clear()

    def closes(self, listener: ListenerEntity) -> bool:
        """Return whether the listener has to be closed now; one for HTTP stays, without WebSockets."""
        return self.active and not self.reopens and listener.clients_leave and not listener.serves_http

    def report(self) -> DrainReport:
        """Return the state of the drain."""
        if not self.active:
            return DrainReport(SERVING)
        now_s = trio.current_time()
        return DrainReport(
            DRAINED if self._done else DRAINING,
            total=self._total,
            closed=self._closed,
            left=self._count_left(),
            over_s=self._over_s,
            for_s=now_s - self._started_s,
        )

    def reasons(self) -> Iterator[str]:
        """Yield the reason why the router is not ready while it drains."""
        if self.active:
            yield f"draining: {self._progress()}"

    def findings(self, router: RouterEntity) -> Iterator[Problem]:
        """Yield the finding about the router while it drains."""
        if self.active:
            yield Problem(
                router.place,
                f"takes no new clients, because it is draining: {self._progress()}",
                router.type.section,
                suggestion="`trouter drain --cancel` ends it",
                severity=Severity.NOTE,
                entity=router.identity,
            )

    def _progress(self) -> str:
        return f"{self._count_left()} of {self._total} client connections are left"

    async def run(self) -> None:
        """Close connections when their time has come, until cancelled."""
        while True:
            if not (self.active or self._leaving):
                self._began = trio.Event()
                await self._began.wait()
            with BUGS.contained("internal error in the drain"):
                self._look()
            self._flush()
            await trio.sleep(CALM_LOOK_S if self._done else LOOK_S)

    def _look(self) -> None:
        """Let connections begin to leave whose turn it is, and close those that have nothing under way."""
        now_s = trio.current_time()
        if self.active:
            self._begin_due(now_s)
        for connection, latest_s in list(self._leaving.items()):
            if connection.number not in self._connections:  # its peer was faster
                del self._leaving[connection]
                self._closed += 1
            elif now_s >= latest_s or connection.count_unsettled() == 0:
                del self._leaving[connection]
                self._closed += 1
                unsettled = connection.count_unsettled()
                more = f" (unsettled deliveries: {unsettled})" if unsettled else ""
                log.info("[C%d] closed: the router is draining%s", connection.number, more)
                connection.close_at_once(FAREWELL)
        if self.active and not self._done and self._count_left() == 0:
            self._done = True
            log.log(logs.NOTICE, "Drained: no client connection is left, %d were closed", self._closed)

    def _begin_due(self, now_s: float) -> None:
        waiting = self._waiting()
        while waiting and now_s >= min(self._next_s, self._ends_s):
            connection = waiting.pop(0)
            connection.stop_messages()
            self._leaving[connection] = now_s + self._patience_s()
            self._next_s += max(self._ends_s - self._next_s, 0.0) / max(len(waiting), 1)

    def _waiting(self) -> list[ConnectionView]:
        """Return the connections that have not begun to leave, the longest open first."""
        return [
            each
            for each in self._connections.values()
            if each.leaves_in_drain and each.number not in self._spared and each not in self._leaving
        ]

    def _count_left(self) -> int:
        return len(self._waiting()) + len(self._leaving)
