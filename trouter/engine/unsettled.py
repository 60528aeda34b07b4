"""The unsettled deliveries of a session, and the dispositions about them (AMQP 1.0 part 2, 2.6.12).

Ids are serial numbers of 32 bits (2.8.10). They arrive in order and mostly leave in order, so a ring indexed by the
id's low bits finds one in one step. Deliveries that stay while thousands pass move to a dict. So memory, and the cost
of a disposition of any range, depend on the deliveries outstanding and not on the distance between the oldest and the
newest.

Dispositions of one pass over the input are merged: neighbouring ids with the same state become one range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trouter.wire.outgoing import write_disposition
from trouter.wire.transfers import SHORT_STATES, DispositionReader

from .faults import Fault, PeerFault
from .ports import ConnectionPort, Delivery, LinkPort, advance_incoming, advance_outgoing
from .states import DeliveryStep

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

_MASK32: Final[Py_ssize_t] = 0xFFFFFFFF
_HALF: Final[Py_ssize_t] = 0x80000000
#: Slots that an empty ring may keep.
_ROOMY: Final[Py_ssize_t] = 4096
#: The slots of every ring before its first delivery: most sessions that a peer begins never carry one.
_NO_SLOTS: list[Delivery | None] = []
_DECIDE: Final[c_int] = int(DeliveryStep.DECIDE)
_SETTLE_HERE: Final[c_int] = int(DeliveryStep.SETTLE_HERE)
_SETTLE_THERE: Final[c_int] = int(DeliveryStep.SETTLE_THERE)
#: The descriptor of the first outcome (part 3, 3.4); those below are states on the way to one.
_FIRST_OUTCOME: Final[c_int] = 0x24
_DISPOSITION_OVERHEAD: Final[Py_ssize_t] = 32
_FITS_ANYWHERE: Final[Py_ssize_t] = 512 - _DISPOSITION_OVERHEAD


class DeliveryRing:
    """Deliveries by id; ``count`` is their number."""

    __slots__ = ("_slots", "_mask", "_first", "_width", "_stragglers", "count")

    def __init__(self) -> None:
        self._slots: list[Delivery | None] = _NO_SLOTS
        self._mask: Py_ssize_t = -1
        self._first: Py_ssize_t = 0
        self._width: Py_ssize_t = 0
        #: The deliveries that were moved out of the slots; None before the first.
        self._stragglers: dict[int, Delivery] | None = None
        self.count: Py_ssize_t = 0

    def append(self, delivery_id: Py_ssize_t, delivery: Delivery) -> None:
        """Add the newest delivery; ``delivery_id`` is later than every id added before."""
        if self._width == 0:
            self._first = delivery_id
            if self._mask < 0 or self._mask >= _ROOMY:
                self._slots = [None] * 8
                self._mask = 7
        width: Py_ssize_t = ((delivery_id - self._first) & _MASK32) + 1
        if width > self._mask + 1:
            self._make_room(delivery_id)
            width = ((delivery_id - self._first) & _MASK32) + 1
        self._slots[delivery_id & self._mask] = delivery
        self._width = width
        self.count += 1

    def get(self, delivery_id: Py_ssize_t) -> Delivery | None:
        """Return the delivery; None if it is settled or was never there."""
        if ((delivery_id - self._first) & _MASK32) < self._width:
            return self._slots[delivery_id & self._mask]
        if self._stragglers:
            return self._stragglers.get(delivery_id)
        return None

    def remove(self, delivery_id: Py_ssize_t) -> None:
        """Forget a delivery; do nothing if it is not there."""
        first: Py_ssize_t = self._first
        width: Py_ssize_t = self._width
        if ((delivery_id - first) & _MASK32) < width:
            slots: list[Delivery | None] = self._slots
            mask: Py_ssize_t = self._mask
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

    def between(self, first: Py_ssize_t, last: Py_ssize_t) -> list[Delivery]:
        """Return the deliveries from ``first`` to ``last``, oldest first; ``last`` must not precede ``first``."""
        found: list[Delivery] = []
        step: Py_ssize_t
        delivery_id: Py_ssize_t
        if self._count_in_slots() * 8 < self._width:
            self._spread()
        reach: Py_ssize_t = (last - first) & _MASK32
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
        position: Py_ssize_t = (first - self._first) & _MASK32
        if position >= _HALF:  # that far behind is before
            position -= _MASK32 + 1
        stop: Py_ssize_t = position + reach
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
        found = list(self._stragglers.values()) if self._stragglers else []
        for position in range(self._width):
            delivery = self._slots[(self._first + position) & self._mask]
            if delivery is not None:
                found.append(delivery)
        return found

    def _count_in_slots(self) -> Py_ssize_t:
        return self.count - len(self._stragglers) if self._stragglers else self.count

    def _make_room(self, newest: Py_ssize_t) -> None:
        """Widen the ring until ``newest`` fits, or restart it there if few deliveries spread over many ids."""
        position: Py_ssize_t
        width: Py_ssize_t = ((newest - self._first) & _MASK32) + 1
        if self._count_in_slots() * 4 < width:
            self._spread()
            self._first = newest
            return
        size: Py_ssize_t = self._mask + 1
        while size < width:
            size *= 2
        slots: list[Delivery | None] = [None] * size
        for position in range(self._width):
            delivery_id: Py_ssize_t = (self._first + position) & _MASK32
            slots[delivery_id & (size - 1)] = self._slots[delivery_id & self._mask]
        self._slots = slots
        self._mask = size - 1

    def _spread(self) -> None:
        """Move all deliveries to the dict: the ring is too wide to walk for the few in it."""
        if self._stragglers is None:
            self._stragglers = {}
        position: Py_ssize_t
        for position in range(self._width):
            delivery_id: Py_ssize_t = (self._first + position) & _MASK32
            delivery = self._slots[delivery_id & self._mask]
            if delivery is not None:
                self._stragglers[delivery_id] = delivery
                self._slots[delivery_id & self._mask] = None
        self._width = 0


class DispositionRanges:
    """The dispositions of one session in one role, gathered until ``write_disposition``."""

    __slots__ = ("_role", "_first", "_last", "_settled", "_state", "pending")

    def __init__(self, role: bool) -> None:
        self._role = role
        self._first: Py_ssize_t = 0
        self._last: Py_ssize_t = 0
        self._settled = False
        self._state: bytes | None = None
        self.pending = False

    def add_settlement(
        self, out: bytearray, channel: c_int, delivery_id: Py_ssize_t, state: bytes | None, settled: bool
    ) -> None:
        """Gather one delivery's encoded ``state``; write the range so far to ``out`` if this does not extend it."""
        if self.pending:
            if (
                delivery_id == ((self._last + 1) & _MASK32)
                and settled == self._settled
                and (state is self._state or state == self._state)
            ):
                self._last = delivery_id
                return
            self.write_disposition(out, channel)
        self._first = self._last = delivery_id
        self._settled = settled
        self._state = state
        self.pending = True

    def write_disposition(self, out: bytearray, channel: c_int) -> None:
        """Write the gathered disposition."""
        if self.pending:
            self.pending = False
            write_disposition(out, channel, self._role, self._first, self._last, self._settled, self._state)
            self._state = None


class SessionDeliveries:
    """The unsettled deliveries of a session in both directions, and the dispositions about them that are due."""

    __slots__ = (
        "_connection",
        "_channel",
        "_last_incoming_id",
        "next_outgoing_id",
        "incoming",
        "outgoing",
        "_receiver_settlements",
        "_sender_settlements",
    )

    def __init__(self, connection: ConnectionPort, channel: c_int, first_outgoing_id: Py_ssize_t) -> None:
        self._connection = connection
        self._channel = channel
        self.incoming = DeliveryRing()
        self.outgoing = DeliveryRing()
        #: The delivery-id of the peer's last delivery, -1 before the first, and of our next one.
        self._last_incoming_id: Py_ssize_t = -1
        self.next_outgoing_id = first_outgoing_id
        self._receiver_settlements = DispositionRanges(True)
        self._sender_settlements = DispositionRanges(False)

    def check_delivery_id(self, delivery_id: Py_ssize_t) -> None:
        """Check that a first transfer's delivery-id follows the last one; PeerFault."""
        if self._last_incoming_id >= 0:
            distance: Py_ssize_t = (delivery_id - self._last_incoming_id) & _MASK32
            if distance == 0 or distance >= _HALF:
                raise PeerFault(
                    Fault.DELIVERY_ID, detail=f"delivery-id {delivery_id} does not follow {self._last_incoming_id}"
                )
            if self.incoming.get(delivery_id) is not None:
                raise PeerFault(Fault.DELIVERY_ID, detail=f"delivery-id {delivery_id} is not settled yet")
        self._last_incoming_id = delivery_id

    def add_incoming(self, delivery: Delivery) -> None:
        """Keep a delivery of the peer until one side has settled it."""
        self.incoming.append(delivery.delivery_id, delivery)

    def add_outgoing(self, delivery: Delivery) -> None:
        """Give a delivery of ours the next id, and keep it until one side has settled it."""
        delivery.delivery_id = self.next_outgoing_id
        self.next_outgoing_id = (self.next_outgoing_id + 1) & _MASK32
        if not delivery.settled:
            self.outgoing.append(delivery.delivery_id, delivery)

    def forget_incoming(self, delivery: Delivery) -> None:
        """Forget a delivery of the peer without a disposition (it was aborted, or its link is gone)."""
        self.incoming.remove(delivery.delivery_id)

    def forget_outgoing(self, delivery: Delivery) -> None:
        """Forget a delivery of ours without a disposition (it was aborted, or its link is gone)."""
        delivery.mark_settled()
        self.outgoing.remove(delivery.delivery_id)

    def deliveries_of(self, link: LinkPort, incoming: bool) -> list[Delivery]:
        """Return the link's unsettled deliveries in one direction, oldest first."""
        ring = self.incoming if incoming else self.outgoing
        return [each for each in ring.all() if each.link is link]

    def drop_link_deliveries(self, link: LinkPort, incoming: bool) -> None:
        """Forget the link's unsettled deliveries in one direction: they cannot be settled any more."""
        for delivery in self.deliveries_of(link, incoming):
            if incoming:
                self.forget_incoming(delivery)
            else:
                self.forget_outgoing(delivery)

    def drop_all_deliveries(self) -> None:
        """Forget every delivery; their owners are done with them."""
        self.incoming = DeliveryRing()
        self.outgoing = DeliveryRing()

    # --- settlement

    def settle_incoming(self, delivery: Delivery, code: c_int, state: bytes | None, settled: bool) -> None:
        """Gather our state for a delivery that no side has settled; with ``settled`` forget it."""
        if settled:
            advance_incoming(delivery, _SETTLE_HERE)
        elif code >= _FIRST_OUTCOME:
            advance_incoming(delivery, _DECIDE)
        delivery.state_code = code
        if state is not None and len(state) > _FITS_ANYWHERE:
            state = self._fitting_state(code, state)
        if settled:
            self.incoming.remove(delivery.delivery_id)
        self._receiver_settlements.add_settlement(
            self._connection.out, self._channel, delivery.delivery_id, state, settled
        )

    def settle_outgoing(self, delivery: Delivery, code: c_int, state: bytes | None, settled: bool) -> None:
        """Gather our state for a delivery of ours that no side has settled; with ``settled`` forget it."""
        if settled:
            advance_outgoing(delivery, _SETTLE_HERE)
        delivery.state_code = code
        if state is not None and len(state) > _FITS_ANYWHERE:
            state = self._fitting_state(code, state)
        if settled:
            self.outgoing.remove(delivery.delivery_id)
        self._sender_settlements.add_settlement(
            self._connection.out, self._channel, delivery.delivery_id, state, settled
        )

    def _fitting_state(self, code: c_int, state: bytes) -> bytes | None:
        """Return ``state``, or its outcome without details (None if unknown) if the peer's frames are too small."""
        if len(state) <= self._connection.remote_max_frame_bytes - _DISPOSITION_OVERHEAD:
            return state
        return SHORT_STATES.get(code)

    def write_dispositions(self) -> None:
        """Write the gathered dispositions."""
        if self._receiver_settlements.pending:
            self._receiver_settlements.write_disposition(self._connection.out, self._channel)
        if self._sender_settlements.pending:
            self._sender_settlements.write_disposition(self._connection.out, self._channel)

    def receive_disposition(self, disposition: DispositionReader) -> None:
        """Apply the peer's state to a range of deliveries; skip ids that are settled already. PeerFault."""
        first: Py_ssize_t = disposition.first
        last: Py_ssize_t = disposition.last
        ring: DeliveryRing = self.outgoing if disposition.role else self.incoming
        if first == last:
            delivery: Delivery | None = ring.get(first)
            if delivery is not None:
                self._apply_disposition(ring, delivery, disposition)
            return
        if ((last - first) & _MASK32) >= _HALF:
            raise PeerFault(Fault.DISPOSITION_RANGE, first=first, last=last)
        named = ring.between(first, last)
        if not disposition.settled:  # the peer may say it again and again
            self._connection.work += len(named)
        for each in named:
            delivery = each
            self._apply_disposition(ring, delivery, disposition)

    def _apply_disposition(self, ring: DeliveryRing, delivery: Delivery, disposition: DispositionReader) -> None:
        if disposition.state_code != 0:
            delivery.remote_code = disposition.state_code
            delivery.remote_state = disposition.state
        if disposition.settled:
            if disposition.role:
                advance_outgoing(delivery, _SETTLE_THERE)
            else:
                advance_incoming(delivery, _SETTLE_THERE)
            ring.remove(delivery.delivery_id)
        elif disposition.role and disposition.state_code >= _FIRST_OUTCOME:
            advance_outgoing(delivery, _DECIDE)
        delivery.link.sink.on_disposition(delivery)
