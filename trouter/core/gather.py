"""Links on which the router is the receiver: complete messages of a bounded size go to a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trouter.engine.link import IncomingLink
from trouter.engine.ports import Delivery, LinkPort

from .ingress import Ingress
from .outcomes import ACCEPTED, ACCEPTED_STATE
from .routerport import RouterPort

#: The largest message between routers outside control links, in bytes; larger ones are discarded.
MAX_NOTE_BYTES: Final = 65_536


class Gatherer(Ingress):
    """A link whose receiver is the router. It accepts every message, and discards those over ``max_bytes``."""

    __slots__ = ("_gathered", "_max_bytes", "_take")

    def take_for(self, take: Callable[[bytes], None], max_bytes: int = MAX_NOTE_BYTES) -> None:
        """Pass complete messages to ``take`` from now on."""
        self._take = take
        self._max_bytes = max_bytes
        self._gathered = bytearray()

    def on_transfer(self, link: LinkPort, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        """Gather the next frame; pass the message on once it is complete."""
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
        """Discard the frames of an aborted delivery."""
        self._gathered.clear()
        delivery.settled = True
        self.top_up()


def gather(router: RouterPort, link: IncomingLink, capacity: int, take: Callable[[bytes], None]) -> Gatherer:
    """Return a new receiver in the router for ``link``; its ``open`` grants ``capacity`` as credit."""
    gatherer = Gatherer(
        link, router.pulse, router.table, None, capacity=capacity, strips=False, to_override=None, totals=router.totals
    )
    gatherer.take_for(take)
    link.keeps_tags = False
    link.sink = gatherer
    return gatherer
