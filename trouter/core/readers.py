"""Links on which the router is the receiver: complete messages of a bounded size go to a function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, final

from .arrival import UNCHANGED, Arrival
from .ingress import Destination, Ingress
from .outcomes import ACCEPTED, BARE, REJECTED

#: The largest message between routers outside control links, in bytes; larger ones are rejected.
MAX_NOTE_BYTES: Final = 65_536
#: Reads a message, and returns what processes it; None for a malformed one.
Read = Callable[[bytes], Callable[[], None] | None]


@final
class ToReader(Destination):
    """A function of the router. Messages over ``max_bytes`` are rejected, and malformed ones.

    Complete messages go to ``read``, and once they are answered to what it returns.
    """

    __slots__ = ("_read", "max_bytes")

    def __init__(self, read: Read, max_bytes: int) -> None:
        super().__init__(UNCHANGED)
        self._read = read
        self.max_bytes = max_bytes

    def pass_on(self, ingress: Ingress, arrival: Arrival) -> None:
        """See ``Destination.pass_on``. The deliveries count on their link, and not among the router's outcomes."""
        delivery = arrival.delivery
        if not delivery.complete:  # it is too large, or this would not have been called before its end
            ingress.settlement.refuse_delivery(delivery, REJECTED, BARE[REJECTED])
            return
        whole = arrival.whole()
        process = self._read(whole) if len(whole) <= self.max_bytes else None
        ingress.settlement.answer_uncounted(delivery, REJECTED if process is None else ACCEPTED)
        if arrival.message is not None:
            arrival.message.now_routed()
        ingress.account.top_up_credit()
        if process is not None:
            process()


def every(take: Callable[[bytes], None]) -> Read:
    """Return a reader that passes each message to ``take``; none of them is malformed."""
    return partial(partial, take)
