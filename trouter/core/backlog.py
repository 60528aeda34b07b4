"""The deliveries that wait for an outgoing link, in their order; pre-settled ones may be dropped (routing.md 2.8)."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from trouter.engine.link import OutgoingLink
from trouter.engine.ports import LinkSink

from .counters import Counters
from .message import OutgoingDelivery
from .ports import Pulse


class LinkPool(Protocol):
    """The links of one connection for unfinished messages; see ``Streams``."""

    def give_back(self, link: Backlog) -> None:
        """Take the link back: its message has ended or was given up."""

    def lost(self, link: Backlog) -> None:
        """Forget the link, which is gone."""


class Backlog(LinkSink):
    """The deliveries that wait for one outgoing link, in order; the base of ``Egress``."""

    __slots__ = ("_dropped", "_presettled", "backlog", "counters", "family", "link", "pool", "pulse", "queue")

    def __init__(self, link: OutgoingLink, pulse: Pulse) -> None:
        self.link = link
        self.pulse = pulse
        self.queue: deque[OutgoingDelivery] = deque()
        #: The deliveries that wait; kept beside the queue for the data path.
        self.backlog = 0
        #: The dropped deliveries in the queue; they keep their position, which is never the first.
        self._dropped = 0
        #: The deliveries in the queue that may be dropped, and some that have left it.
        self._presettled: list[OutgoingDelivery] = []
        self.counters = Counters()
        #: The class of its address, as an index into ``latency.FAMILIES``.
        self.family = 0
        #: The pool that the link belongs to; None for other links.
        self.pool: LinkPool | None = None

    def _is_next(self, out: OutgoingDelivery) -> bool:
        return self.backlog > 0 and self.queue[0] is out

    def _take_next(self) -> None:
        self.queue.popleft()
        self.backlog -= 1
        if self._dropped > 0:
            self._pass_dropped()
        if self.pool is not None and self.backlog == 0:
            self.pool.give_back(self)

    def _pass_dropped(self) -> None:
        """Remove dropped deliveries from the front of the queue."""
        while self._dropped > 0:
            out = self.queue[0]
            if not out.aborted:
                break
            self.queue.popleft()
            self._dropped -= 1

    def _take_out(self, out: OutgoingDelivery) -> None:
        """Remove a delivery from any position in the queue."""
        self.queue.remove(out)
        self.backlog -= 1
        self._pass_dropped()
        if self.pool is not None and self.backlog == 0:
            self.pool.give_back(self)

    def _drop_presettled(self) -> None:
        """Drop the pre-settled deliveries that wait, except the queue's first and any half-written one (2.8).

        The cost does not depend on the other deliveries in the queue.
        """
        for each in self._presettled:
            waiting = each
            if not (waiting.begun or waiting.complete or waiting is self.queue[0]):
                self._count_dropped()
                if waiting.message is not None:
                    waiting.message.leave(waiting)
                waiting.complete = waiting.aborted = True
                self.backlog -= 1
                self._dropped += 1
        self._presettled.clear()
        if self._dropped > self.backlog:
            self.queue = deque([each for each in self.queue if not each.aborted])
            self._dropped = 0

    def _may_drop(self, out: OutgoingDelivery) -> None:
        """Note a delivery whose outcome no sender waits for; keep the list of these about as short as the backlog."""
        self._presettled.append(out)
        if len(self._presettled) > 2 * self.backlog + 8:
            self._presettled = [each for each in self._presettled if not (each.begun or each.complete)]

    def _count_dropped(self) -> None:
        self.counters.presettled += 1
        self.counters.dropped_presettled += 1
        self.pulse.outcomes.dropped[self.family] += 1
