"""Idle time-outs and heartbeats for all connections, by one task (AMQP 1.0 part 2, 2.4.5)."""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from trouter.engine.connection import Connection

    from .hub import Hub


class Ticker:
    """Calls ``tick`` of each connection as often as the connection wants it."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Connection]] = []
        self._order = count()
        self._watched: set[Connection] = set()
        self._sleep: trio.CancelScope | None = None

    def add(self, connection: Connection) -> None:
        """Watch a connection whose opens were exchanged."""
        period_s = connection.tick_period_s
        if period_s > 0:
            self._watched.add(connection)
            when = trio.current_time() + period_s
            if self._sleep is not None and (not self._due or when < self._due[0][0]):
                self._sleep.cancel()
            heapq.heappush(self._due, (when, next(self._order), connection))

    def remove(self, connection: Connection) -> None:
        """Stop watching."""
        self._watched.discard(connection)

    async def run(self, hub: Hub) -> None:
        """Tick for ever."""
        while True:
            now_s = trio.current_time()
            while self._due and self._due[0][0] <= now_s:
                _, _, connection = heapq.heappop(self._due)
                if connection in self._watched:
                    self._tick(hub, connection, now_s)
            hub.flush()
            with trio.CancelScope(deadline=self._due[0][0] if self._due else float("inf")) as self._sleep:
                await trio.sleep_forever()

    def _tick(self, hub: Hub, connection: Connection, now_s: float) -> None:
        connection.tick(now_s)
        if connection.finished:
            self._watched.discard(connection)
            connection.owner.idle()
            return
        heapq.heappush(self._due, (now_s + connection.tick_period_s, next(self._order), connection))
