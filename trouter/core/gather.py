"""Links on which the router is the receiver: complete messages of a bounded size go to a function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from trouter.engine.ports import Delivery, LinkPort

from .ingress import Ingress
from .outcomes import ACCEPTED, BARE, REJECTED

#: The largest message between routers outside control links, in bytes; larger ones are rejected.
MAX_NOTE_BYTES: Final = 65_536
#: Reads a message, and returns what processes it; None for a malformed one.
Read = Callable[[bytes], Callable[[], None] | None]


class Gatherer(Ingress):
    """A link whose receiver is the router. It rejects messages over ``max_bytes``, and malformed ones."""

    __slots__ = ("_gathered", "_max_bytes", "_read")

    def read_for(self, read: Read, max_bytes: int = MAX_NOTE_BYTES) -> None:
        """Pass complete messages to ``read`` from now on, and once they are answered call what it returns."""
        self._read = read
        self._max_bytes = max_bytes
        self._gathered = bytearray()

    def on_transfer(self, link: LinkPort, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        """Gather the next frame; pass the message on once it is complete."""
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
        self.unsettled = 0
        self.top_up()
        if process is not None:
            process()

    def on_aborted(self, link: LinkPort, delivery: Delivery) -> None:
        """Discard the frames of an aborted delivery."""
        self._gathered.clear()
        delivery.settled = True
        self.top_up()


def every(take: Callable[[bytes], None]) -> Read:
    """Return a reader that passes each message to ``take``; none of them is malformed."""
    return partial(partial, take)
