"""Links on which the router itself is the receiver: whole messages, of a bounded size, go to the link's owner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trouter.engine.link import IncomingLink
from trouter.engine.ports import Delivery, LinkPort

from .ingress import Ingress
from .outcomes import ACCEPTED, ACCEPTED_STATE
from .routerport import RouterPort

#: The largest message that one router tells another beside its control links; one larger is thrown away.
MAX_NOTE_BYTES: Final = 65_536


class Gatherer(Ingress):
    """A link whose receiver is the router. Every message is accepted; one over ``max_bytes`` is thrown away."""

    __slots__ = ("_gathered", "_max_bytes", "_take")

    def take_for(self, take: Callable[[bytes], None], max_bytes: int = MAX_NOTE_BYTES) -> None:
        """Hand whole messages to ``take`` from here on."""
        self._take = take
        self._max_bytes = max_bytes
        self._gathered = bytearray()

    def on_transfer(self, link: LinkPort, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        """Gather the next frame; hand the message over once it is whole."""
        if len(self._gathered) <= self._max_bytes:
            self._gathered += data[start:end]
        if not delivery.complete:
            return
        self.counters.deliveries += 1
        if delivery.remote_settled:
            self.counters.presettled += 1
        else:
            delivery.link.session.settle_incoming(delivery, ACCEPTED, ACCEPTED_STATE, True)
        whole = bytes(self._gathered)
        self._gathered.clear()
        self.unsettled = 0
        self.top_up()
        if len(whole) <= self._max_bytes:
            self._take(whole)

    def on_aborted(self, link: LinkPort, delivery: Delivery) -> None:
        """Forget what came of a delivery that the sender aborted."""
        self._gathered.clear()
        delivery.settled = True
        self.top_up()


def gather(router: RouterPort, link: IncomingLink, capacity: int, take: Callable[[bytes], None]) -> Gatherer:
    """Put the router itself behind ``link``, with ``capacity`` for its credit; ``open`` grants it."""
    gatherer = Gatherer(
        link, router.pulse, router.table, None, capacity=capacity, strips=False, to_override=None, totals=router.totals
    )
    gatherer.take_for(take)
    link.keeps_tags = False
    link.sink = gatherer
    return gatherer
