"""The deliveries that wait for one outgoing link, for credit, for its session's window or for room in the output."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from .message import OutgoingDelivery

if TYPE_CHECKING:
    from cython import Py_ssize_t


class Backlog:
    """The deliveries that wait, in their order; pre-settled ones may be dropped (routing.md 2.8).

    ``count`` is their number, and ``queue`` has them, None before the first; dropped ones keep their position there.
    """

    __slots__ = ("queue", "count", "_dropped", "_presettled")

    def __init__(self) -> None:
        self.queue: deque[OutgoingDelivery] | None = None
        self.count: Py_ssize_t = 0
        #: The dropped deliveries in the queue, of which none is the first.
        self._dropped: Py_ssize_t = 0
        #: The deliveries in the queue that may be dropped, and some that have left it; None before the first.
        self._presettled: list[OutgoingDelivery] | None = None

    def count_without_credit(self) -> Py_ssize_t:
        """Return the number of deliveries that have not used a credit of the receiver yet."""
        if self.count > 0 and self.first().begun:
            return self.count - 1
        return self.count

    def first(self) -> OutgoingDelivery:
        """Return the delivery that is next; there must be one."""
        return self.queue[0]  # type: ignore[index]  # none waits without a queue

    def begins_with(self, out: OutgoingDelivery) -> bool:
        """Return whether ``out`` is next."""
        return self.count > 0 and self.first() is out

    def append(self, out: OutgoingDelivery) -> None:
        """Add the last delivery."""
        if self.queue is None:
            self.queue = deque()
        self.queue.append(out)
        self.count += 1

    def remove(self, out: OutgoingDelivery) -> bool:
        """Remove a delivery from any position; return False if it is not there."""
        if self.begins_with(out):
            self.queue.popleft()  # type: ignore[union-attr]  # it is there
        elif self.queue is None or out not in self.queue:
            return False
        else:
            self.queue.remove(out)
        self.count -= 1
        self._pass_dropped()
        return True

    def clear(self) -> list[OutgoingDelivery]:
        """Remove and return all deliveries that wait."""
        waiting = [] if self.queue is None else [out for out in self.queue if not out.aborted]
        self.queue = None
        self._presettled = None
        self.count = self._dropped = 0
        return waiting

    def _pass_dropped(self) -> None:
        """Remove dropped deliveries from the front of the queue."""
        while self._dropped > 0:
            out: OutgoingDelivery = self.first()
            if not out.aborted:
                break
            self.queue.popleft()  # type: ignore[union-attr]  # the first was there
            self._dropped -= 1

    def note_droppable(self, out: OutgoingDelivery) -> None:
        """Note a delivery whose outcome no sender waits for; keep the list of these about as short as the backlog."""
        if self._presettled is None:
            self._presettled = []
        self._presettled.append(out)
        if len(self._presettled) > 2 * self.count + 8:
            self._presettled = [kept for kept in self._presettled if not (kept.begun or kept.complete)]

    def forget_droppable(self) -> None:
        """Forget what was noted: no delivery waits."""
        self._presettled = None

    def drop_presettled(self) -> Py_ssize_t:
        """Drop the pre-settled deliveries, except the queue's first and any half-written one; return how many (2.8).

        The cost does not depend on the other deliveries in the queue.
        """
        if self._presettled is None:
            return 0
        dropped: Py_ssize_t = 0
        out: OutgoingDelivery
        for out in self._presettled:
            if not (out.begun or out.complete or out is self.first()):
                if out.message is not None:
                    out.message.remove_copy(out)
                out.drop_unsent()
                dropped += 1
        self._presettled = None
        self.count -= dropped
        self._dropped += dropped
        if self._dropped > self.count:
            self.queue = deque([kept for kept in self.queue if not kept.aborted])  # type: ignore[union-attr]
            self._dropped = 0
        return dropped
