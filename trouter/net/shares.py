"""Shares of the processor: how much of it each user has taken, and whose work comes next.

Nothing is reserved. While there is time for everybody, shares only count. As soon as work has to wait, the next piece
is that of the share which has taken least, so a user who asks for very much waits for itself, and not others for it
(decision 0033).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

#: How much less is counted of the work of a router, whose connection carries many clients.
ROUTER_WEIGHT: Final = 8
#: The most seconds that a share which begins to wait counts as having taken more than the one served last. What it took
#: while there was time for all is no debt: else a user who has worked all day would wait as long for a newcomer.
MOST_OWED_S: Final = 0.02


class ProcessorShare:
    """What the connections of one user have taken of the processor."""

    __slots__ = ("key", "weight", "connections", "spent_s")

    def __init__(self, key: Hashable, weight: Py_ssize_t) -> None:
        self.key = key
        self.weight = weight
        self.connections: Py_ssize_t = 0
        #: Seconds of the processor, divided by the weight. A share that was idle begins with ``Shares.floor_s``.
        self.spent_s = 0.0

    def charge(self, seconds: float) -> None:
        """Count work that was done for it."""
        self.spent_s += seconds / self.weight


class Shares:
    """The shares of all connections; one without a connection has no entry."""

    __slots__ = ("floor_s", "_by_key")

    def __init__(self) -> None:
        #: What the share whose work was next had taken: nobody who comes later may claim the time before.
        self.floor_s = 0.0
        self._by_key: dict[Hashable, ProcessorShare] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def join(self, key: Hashable, weight: int = 1) -> ProcessorShare:
        """Return the share with ``key``, which one more connection has."""
        share = self._by_key.get(key)
        if share is None:
            share = self._by_key[key] = ProcessorShare(key, weight)
        share.connections += 1
        return share

    def leave(self, share: ProcessorShare) -> None:
        """Let a connection have ``share`` no longer."""
        share.connections -= 1
        if share.connections == 0:
            del self._by_key[share.key]


class FairQueue:
    """Work that waits: next is the oldest of the share that has taken least.

    ``count`` is the number of items; each is there once.
    """

    __slots__ = ("count", "_shares", "_owners", "_waiting", "_noted_s", "_heap", "_serial")

    def __init__(self, shares: Shares) -> None:
        self.count: Py_ssize_t = 0
        self._shares = shares
        self._owners: dict[Any, ProcessorShare] = {}
        self._waiting: dict[ProcessorShare, OrderedDict[Any, int]] = {}
        #: What each share in ``_waiting`` had taken, as its entry in ``_heap`` says; another entry of it is old.
        self._noted_s: dict[ProcessorShare, float] = {}
        #: What a share had taken, a serial number, and the share.
        self._heap: list[tuple[float, int, ProcessorShare]] = []
        self._serial: Py_ssize_t = 0

    def add(self, share: ProcessorShare, item: Hashable, value: c_int = 0) -> None:
        """Add ``item`` with a value; one that waits already keeps its place, and gets the value."""
        owner: ProcessorShare | None = self._owners.get(item)
        if owner is not None:
            self._waiting[owner][item] = value
            return
        self._owners[item] = share
        self.count += 1
        items = self._waiting.get(share)
        if not items:
            floor_s: float = self._shares.floor_s
            share.spent_s = min(max(share.spent_s, floor_s), floor_s + MOST_OWED_S)
            if items is None:
                items = self._waiting[share] = OrderedDict()
                self._note(share)
            elif share.spent_s < self._noted_s[share]:
                self._note(share)
        items[item] = value

    def pop(self) -> tuple[Any, int]:
        """Remove and return the next item and its value; IndexError without one."""
        while True:
            noted_s: float
            share: ProcessorShare
            noted_s, _, share = self._heap[0]
            if noted_s != self._noted_s.get(share):  # it was noted again
                heappop(self._heap)
            elif not (items := self._waiting[share]):
                heappop(self._heap)
                del self._waiting[share], self._noted_s[share]
            elif share.spent_s > noted_s:  # it was charged since
                heappop(self._heap)
                self._note(share)
            else:
                break
        self._shares.floor_s = max(self._shares.floor_s, share.spent_s)
        item, value = items.popitem(last=False)
        self._forget(item)
        return item, value

    def discard(self, item: Hashable) -> None:
        """Remove ``item`` if it waits."""
        owner: ProcessorShare | None = self._owners.get(item)
        if owner is not None:
            del self._waiting[owner][item]
            self._forget(item)

    def _note(self, share: ProcessorShare) -> None:
        """Put ``share`` where what it has taken now belongs."""
        self._serial += 1
        self._noted_s[share] = share.spent_s
        heappush(self._heap, (share.spent_s, self._serial, share))

    def _forget(self, item: Hashable) -> None:
        del self._owners[item]
        self.count -= 1
        if self.count == 0:
            self._heap.clear()
            self._waiting.clear()
            self._noted_s.clear()
