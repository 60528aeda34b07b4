"""Idle time-outs and heartbeats for all connections, by one task (AMQP 1.0 part 2, 2.4.5)."""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from trouter.engine.connection import Connection

    from .hub import Hub

#: Due times of ended connections that the queue may hold before it is cleared of them.
_SPARE_TICKETS: Final = 64


class Ticker:
    """Calls ``tick`` of each connection as often as the connection wants it."""

    def __init__(self) -> None:
        #: When each ticket is due. Tickets, not connections, so that an ended connection is not kept until then.
        self._due: list[tuple[float, int]] = []
        self._watched: dict[int, Connection] = {}
        self._tickets: dict[Connection, int] = {}
        self._numbers = count()
        self._sleep: trio.CancelScope | None = None

    def add(self, connection: Connection) -> None:
        """Tick a connection whose opens were exchanged."""
        period_s = connection.tick_period_s
        if period_s > 0:
            ticket = next(self._numbers)
            self._tickets[connection] = ticket
            self._watched[ticket] = connection
            when = trio.current_time() + period_s
            if self._sleep is not None and (not self._due or when < self._due[0][0]):
                self._sleep.cancel()
            heapq.heappush(self._due, (when, ticket))

    def remove(self, connection: Connection) -> None:
        """Stop ticking a connection; a second call does nothing."""
        ticket = self._tickets.pop(connection, None)
        if ticket is not None:
            del self._watched[ticket]
            if len(self._due) > 2 * len(self._watched) + _SPARE_TICKETS:
                self._due = [due for due in self._due if due[1] in self._watched]
                heapq.heapify(self._due)

    async def run(self, hub: Hub) -> None:
        """Tick the connections that are due, until cancelled."""
        while True:
            self._tick_due(trio.current_time())
            hub.flush()
            with trio.CancelScope(deadline=self._due[0][0] if self._due else float("inf")) as self._sleep:
                await trio.sleep_forever()

    def _tick_due(self, now_s: float) -> None:
        """Tick the connections that are due, apart from ``run``, whose local variables would keep one alive."""
        while self._due and self._due[0][0] <= now_s:
            _, ticket = heapq.heappop(self._due)
            connection = self._watched.get(ticket)
            if connection is not None:
                self._tick(connection, ticket, now_s)

    def _tick(self, connection: Connection, ticket: int, now_s: float) -> None:
        connection.tick(now_s)
        if connection.finished:
            self.remove(connection)
            connection.owner.idle()
            return
        heapq.heappush(self._due, (now_s + connection.tick_period_s, ticket))
