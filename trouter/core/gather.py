"""Links on which the router is the receiver: complete messages of a bounded size go to a function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from trouter.engine.link import IncomingLink
from trouter.engine.ports import Delivery, LinkPort

from . import deliveries
from .incoming_parts import CreditAccount, Settlement, is_gathering
from .message import IncomingDelivery
from .network import Trunk
from .outcomes import ACCEPTED, BARE, REJECTED
from .pace import Pace
from .ports import DeliverySource, SharedState

#: The largest message between routers outside control links, in bytes; larger ones are rejected.
MAX_NOTE_BYTES: Final = 65_536
#: Reads a message, and returns what processes it; None for a malformed one.
Read = Callable[[bytes], Callable[[], None] | None]


class Gatherer(DeliverySource):
    """A link whose receiver is the router. It rejects messages over ``max_bytes``, and malformed ones.

    Complete messages go to ``read``, and once they are answered to what it returns.
    """

    __slots__ = (
        "_gathered",
        "_max_bytes",
        "_read",
        "account",
        "attached_at_s",
        "entry",
        "identity",
        "link",
        "pace",
        "settlement",
    )

    def __init__(self, link: IncomingLink, shared: SharedState, capacity: int, read: Read, max_bytes: int) -> None:
        super().__init__(shared)
        self.link = link
        #: It has no address.
        self.entry = None
        self.account = CreditAccount(link, shared, None, capacity)
        self.counters = self.account.counters
        self.settlement = Settlement(self.account)
        #: The link's number in management; 0 until the router sets it.
        self.identity = 0
        self.attached_at_s = shared.now_s
        self.pace = Pace(shared.now_s)
        self._read = read
        self._max_bytes = max_bytes
        self._gathered = bytearray()

    @property
    def capacity(self) -> int:
        """Credit that its sender may have."""
        return self.account.capacity

    @property
    def unsettled(self) -> int:
        """Number of its open deliveries: none, because each is answered when it is complete."""
        return self.account.unsettled

    def comes_from(self, trunk: Trunk) -> None:
        """Mark the link as a neighbour's."""
        self.trunk = trunk
        self.account.between_routers = self.settlement.of_router = True

    def is_gathering(self) -> bool:
        """Return whether the sender has begun a delivery that was not forwarded yet."""
        return is_gathering(self.link)

    def make_delivery(self, link: LinkPort) -> Delivery:
        """Return a new delivery of the link."""
        return deliveries.new_incoming(link)

    def on_transfer(self, link: LinkPort, arrived: Delivery, data: bytes, start: int, end: int) -> None:
        """Gather the next frame; pass the message on once it is complete."""
        delivery: IncomingDelivery = arrived  # type: ignore[assignment]  # made by ``make_delivery``
        if len(self._gathered) <= self._max_bytes:
            self._gathered += data[start:end]
        if not delivery.complete:
            return
        whole = bytes(self._gathered)
        self._gathered.clear()
        process = self._read(whole) if len(whole) <= self._max_bytes else None
        outcome = REJECTED if process is None else ACCEPTED
        self.counters.deliveries += 1
        if delivery.remote_settled:
            self.counters.presettled += 1
        else:
            delivery.link.session.settle_incoming(delivery, outcome, BARE[outcome], True)
        self.account.top_up_credit()
        if process is not None:
            process()

    def on_aborted(self, link: LinkPort, arrived: Delivery) -> None:
        """Discard the frames of an aborted delivery."""
        self._gathered.clear()
        self.account.top_up_credit()

    def on_disposition(self, arrived: Delivery) -> None:
        """Note that the sender settled a delivery that it has begun."""
        delivery: IncomingDelivery = arrived  # type: ignore[assignment]  # made by ``make_delivery``
        if self.settlement.relay_disposition(delivery):
            self.account.top_up_credit()

    def on_drained(self, link: LinkPort) -> None:
        """Note that the sender gave its credit back."""
        self.account.note_drained()

    def on_overdrawn(self, link: LinkPort) -> None:
        """Count a delivery without credit."""
        self.account.note_overdrawn()

    def on_refused(self, link: LinkPort, arrived: Delivery) -> None:
        """Count a delivery that its link rejected."""
        delivery: IncomingDelivery = arrived  # type: ignore[assignment]  # made by ``make_delivery``
        self.settlement.count_refused(delivery)

    def lose_link(self, own: list[Delivery] | None = None) -> None:
        """Forget an unfinished delivery: the link is lost."""
        self.settlement.lose_deliveries(own)


def every(take: Callable[[bytes], None]) -> Read:
    """Return a reader that passes each message to ``take``; none of them is malformed."""
    return partial(partial, take)
