"""The queue of one output of records: bounded, and it counts what it drops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from trouter.records.schema import Record

#: Records that one taker may have waiting.
MAX_WAITING: Final = 65_536


class Taken(NamedTuple):
    """Records in order, and the number of each kind that were dropped after them."""

    records: list[Record]
    lost: Counter[str]


class RecordQueue:
    """Records for one taker, only of ``kinds`` unless None; ``ring`` is called when the first record waits."""

    def __init__(
        self, ring: Callable[[], None], kinds: Collection[str] | None = None, limit: int = MAX_WAITING
    ) -> None:
        self.kinds = None if kinds is None else frozenset(kinds)
        #: Tenants or vhosts whose records are taken (None: all; an entry None: records without one), and excluded ones.
        self.tenants: Collection[str] | None = None
        self.except_tenants: Collection[str] = ()
        #: Records dropped for want of room, since the start.
        self.lost = 0
        self._ring = ring
        self._limit = limit
        self._waiting: list[Record] = []
        self._lost: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, record: Record) -> None:
        """Queue ``record``, which is not changed any more, for the taker."""
        if self.kinds is not None and record.tag not in self.kinds:
            return
        if (self.tenants is not None or self.except_tenants) and not self._is_wanted(record):
            return
        if len(self._waiting) >= self._limit:
            self._lost[record.tag] += 1
            self.lost += 1
            return
        self._waiting.append(record)
        if len(self._waiting) == 1:
            self._ring()

    def _is_wanted(self, record: Record) -> bool:
        """Return whether the record is about a tenant or vhost whose records are taken."""
        whose = {getattr(record, "tenant", None), getattr(record, "vhost", None)}
        return whose.isdisjoint(self.except_tenants) and (self.tenants is None or not whose.isdisjoint(self.tenants))

    def take_records(self) -> Taken:
        """Remove and return the waiting records and the counts of dropped ones."""
        taken = Taken(self._waiting, self._lost)
        self._waiting, self._lost = [], Counter()
        return taken
