"""The open connections by number, and facts for management (management.md 8, 11)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from trouter.core.links import Endpoint
from trouter.net.view import ConnectionView

if TYPE_CHECKING:
    from trouter.engine.connection import Connection

#: Connections checked in one call.
PORTION: Final = 1000


class Connections(Mapping[int, ConnectionView]):
    """The open connections, the lowest number first."""

    def __init__(self) -> None:
        self._open: dict[int, ConnectionView] = {}
        #: When the last delivery was noticed on a connection, and the count then.
        self._moved: dict[int, tuple[float, int]] = {}
        self._round: Iterator[int] = iter(())

    def __getitem__(self, number: int) -> ConnectionView:
        return self._open[number]

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._open))

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: ConnectionView) -> None:
        """Add a connection whose opens were exchanged."""
        self._open[connection.number] = connection

    def remove(self, number: int) -> None:
        """Remove an ended connection; a second call does nothing."""
        self._open.pop(number, None)
        self._moved.pop(number, None)

    def follow_log(self) -> None:
        """Apply the changed log levels."""
        for connection in self._open.values():
            connection.follow_log()

    def note_deliveries(self, now_s: float) -> None:
        """Note which connections, a portion of them, had deliveries since the last check; call about once a second."""
        looked = 0
        for number in islice(self._round, PORTION):
            looked += 1
            connection = self._open.get(number)
            if connection is not None:
                self._note_count(number, connection.engine, now_s)
        if looked < PORTION:
            self._round = iter(list(self._open))

    def last_delivery_s(self, number: int, now_s: float) -> float | None:
        """Return the seconds since the last delivery, to about a second; None before the first."""
        connection = self._open.get(number)
        if connection is not None:
            self._note_count(number, connection.engine, now_s)
        moved_at_s = self._moved.get(number, (0.0, 0))[0]
        return now_s - moved_at_s if moved_at_s else None

    def _note_count(self, number: int, engine: Connection, now_s: float) -> None:
        count = deliveries(engine)
        moved_at_s, before = self._moved.get(number, (0.0, 0))
        if count != before:  # fewer: a link has ended, with its count
            self._moved[number] = (now_s if count > before else moved_at_s, count)


def deliveries(engine: Connection) -> int:
    """Return the number of deliveries on the current links."""
    sinks = (link.sink for session in engine.sessions() for link in session.links.list_links())
    return sum(sink.counters.deliveries for sink in sinks if isinstance(sink, Endpoint))
