"""Unsettled deliveries by delivery-id (AMQP 1.0 part 2, 2.8.10: serial numbers of 32 bits).

Ids arrive in order and mostly leave in order, so a ring indexed by the id's low bits finds one in one step. Deliveries
that stay while thousands pass move to a dict. So memory, and the cost of a disposition of any range, depend on the
deliveries outstanding and not on the distance between the oldest and the newest.
"""

from __future__ import annotations

from .ports import Delivery

_MASK32 = 0xFFFFFFFF
_HALF = 0x80000000
#: Slots that an empty ring may keep.
_ROOMY = 4096


class DeliveryRing:
    """Deliveries by id; ``count`` is their number."""

    __slots__ = ("_first", "_mask", "_slots", "_stragglers", "_width", "count")

    def __init__(self) -> None:
        # Slots come with the first delivery: most sessions that a peer begins never carry one.
        self._slots: list[Delivery | None] = []
        self._mask = -1
        self._first = 0
        self._width = 0
        self._stragglers: dict[int, Delivery] = {}
        self.count = 0

    def append(self, delivery_id: int, delivery: Delivery) -> None:
        """Add the newest delivery; ``delivery_id`` is later than every id added before."""
        if self._width == 0:
            self._first = delivery_id
            if self._mask < 0 or self._mask >= _ROOMY:
                self._slots = [None] * 8
                self._mask = 7
        width = ((delivery_id - self._first) & _MASK32) + 1
        if width > self._mask + 1:
            self._make_room(delivery_id)
            width = ((delivery_id - self._first) & _MASK32) + 1
        self._slots[delivery_id & self._mask] = delivery
        self._width = width
        self.count += 1

    def get(self, delivery_id: int) -> Delivery | None:
        """Return the delivery; None if it is settled or was never there."""
        if ((delivery_id - self._first) & _MASK32) < self._width:
            return self._slots[delivery_id & self._mask]
        if self._stragglers:
            return self._stragglers.get(delivery_id)
        return None

    def remove(self, delivery_id: int) -> None:
        """Forget a delivery; do nothing if it is not there."""
        first = self._first
        width = self._width
        if ((delivery_id - first) & _MASK32) < width:
            slots = self._slots
            mask = self._mask
            if slots[delivery_id & mask] is not None:
                slots[delivery_id & mask] = None
                self.count -= 1
                while width > 0 and slots[first & mask] is None:
                    first = (first + 1) & _MASK32
                    width -= 1
                self._first = first
                self._width = width
        elif self._stragglers and self._stragglers.pop(delivery_id, None) is not None:
            self.count -= 1

    def between(self, first: int, last: int) -> list[Delivery]:
        """Return the deliveries from ``first`` to ``last``, oldest first; ``last`` must not precede ``first``."""
        found: list[Delivery] = []
        if (self.count - len(self._stragglers)) * 8 < self._width:
            self._spread()
        reach = (last - first) & _MASK32
        if self._stragglers:
            if reach < len(self._stragglers):
                for step in range(reach + 1):
                    straggler = self._stragglers.get((first + step) & _MASK32)
                    if straggler is not None:
                        found.append(straggler)
            else:
                for delivery_id, straggler in self._stragglers.items():
                    if ((delivery_id - first) & _MASK32) <= reach:
                        found.append(straggler)
        position = (first - self._first) & _MASK32
        if position >= _HALF:  # that far behind is before
            position -= _MASK32 + 1
        stop = position + reach
        if position < 0:
            position = 0
        if stop >= self._width:
            stop = self._width - 1
        while position <= stop:
            delivery = self._slots[(self._first + position) & self._mask]
            if delivery is not None:
                found.append(delivery)
            position += 1
        return found

    def all(self) -> list[Delivery]:
        """Return every delivery, oldest first."""
        found = list(self._stragglers.values())
        for position in range(self._width):
            delivery = self._slots[(self._first + position) & self._mask]
            if delivery is not None:
                found.append(delivery)
        return found

    def _make_room(self, newest: int) -> None:
        """Widen the ring until ``newest`` fits, or restart it there if few deliveries spread over many ids."""
        width = ((newest - self._first) & _MASK32) + 1
        live = self.count - len(self._stragglers)
        if live * 4 < width:
            self._spread()
            self._first = newest
            return
        size = self._mask + 1
        while size < width:
            size *= 2
        slots: list[Delivery | None] = [None] * size
        for position in range(self._width):
            delivery_id = (self._first + position) & _MASK32
            slots[delivery_id & (size - 1)] = self._slots[delivery_id & self._mask]
        self._slots = slots
        self._mask = size - 1

    def _spread(self) -> None:
        """Move all deliveries to the dict: the ring is too wide to walk for the few in it."""
        for position in range(self._width):
            delivery_id = (self._first + position) & _MASK32
            delivery = self._slots[delivery_id & self._mask]
            if delivery is not None:
                self._stragglers[delivery_id] = delivery
                self._slots[delivery_id & self._mask] = None
        self._width = 0
