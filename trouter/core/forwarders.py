"""Who gets a message: closest, balanced, multicast (routing.md 2.2-2.5), on one router.

A forwarder knows the local consumers of an address. Whether a consumer has
credit does not gate the choice; what it cannot take yet waits on its link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trouter.engine.ports import Delivery

from .egress import Egress
from .fanout import Fanout
from .message import Message
from .ports import InEndpoint

if TYPE_CHECKING:
    from .inprocess import Subscription

#: Consumers that balanced distribution looks at for one message, so that its cost does not grow with their number.
_LOOKS = 64


class Forwarder:
    """The consumers of one address, and the rule by which a message finds its own; the base finds nobody."""

    __slots__ = ("_turn", "_turn_inside", "consumers", "inside", "subscriptions")

    def __init__(self) -> None:
        self.consumers: list[Egress] = []
        #: Consumers inside the router.
        self.subscriptions: list[Subscription] = []
        #: How many of the last message's copies stayed inside the router.
        self.inside = 0
        self._turn = 0
        self._turn_inside = 0

    def add(self, egress: Egress) -> None:
        """One more consumer, the last in turn."""
        self.consumers.append(egress)

    def remove(self, egress: Egress) -> None:
        """A consumer is gone; the turn stays with whose it was."""
        position = self.consumers.index(egress)
        del self.consumers[position]
        if position < self._turn:
            self._turn -= 1

    def forward(
        self, source: InEndpoint, delivery: Delivery, data: bytes, start: int, end: int, message: Message | None
    ) -> int:
        """Hand the message to its consumers; how many there were (0: undeliverable).

        It is whole in ``data[start:end]`` and needs no annotations of ours, or it is ``message``.
        """
        return 0

    def _to_inside(
        self, source: InEndpoint, delivery: Delivery, data: bytes, start: int, end: int, message: Message | None
    ) -> int:
        """Hand the message to one consumer inside the router, each in turn."""
        if self._turn_inside >= len(self.subscriptions):
            self._turn_inside = 0
        subscription = self.subscriptions[self._turn_inside]
        self._turn_inside += 1
        self.inside = 1
        out = subscription.offer(source, delivery, data, start, end, message)
        if out.partner is not None:
            delivery.partner = out
        return 1


class Closest(Forwarder):
    """A consumer inside the router if there is one, else strict round robin over the local links (2.2)."""

    __slots__ = ()

    def forward(
        self, source: InEndpoint, delivery: Delivery, data: bytes, start: int, end: int, message: Message | None
    ) -> int:
        """See ``Forwarder.forward``."""
        if self.subscriptions:
            return self._to_inside(source, delivery, data, start, end, message)
        count = len(self.consumers)
        if count == 0:
            return 0
        self.inside = 0
        if self._turn >= count:
            self._turn = 0
        egress = self.consumers[self._turn]
        self._turn += 1
        out = egress.offer(source, delivery, data, start, end, message)
        if out.partner is not None:
            delivery.partner = out
        return 1


class Balanced(Forwarder):
    """The local link with the fewest deliveries waiting or unsettled (2.3); one with none at all ends the search."""

    __slots__ = ()

    def forward(
        self, source: InEndpoint, delivery: Delivery, data: bytes, start: int, end: int, message: Message | None
    ) -> int:
        """See ``Forwarder.forward``. A consumer inside the router serves only where no link does."""
        count = len(self.consumers)
        if count == 0:
            if self.subscriptions:
                return self._to_inside(source, delivery, data, start, end, message)
            return 0
        self.inside = 0
        if self._turn >= count:
            self._turn = 0
        chosen = self.consumers[self._turn]
        if count > 1:
            chosen = self._least_loaded(count)
        out = chosen.offer(source, delivery, data, start, end, message)
        if out.partner is not None:
            delivery.partner = out
        return 1

    def _least_loaded(self, count: int) -> Egress:
        """The best of the next in turn: below capacity before above, fewer before more, earlier before later."""
        best = None
        best_load = 0
        best_eligible = False
        position = self._turn
        looks = count if count < _LOOKS else _LOOKS
        while looks > 0:
            looks -= 1
            egress = self.consumers[position]
            load = egress.load()
            position += 1
            if position == count:
                position = 0
            if load == 0:
                self._turn += 1
                return egress
            eligible = load < egress.capacity
            if best is None or (eligible and not best_eligible) or (eligible == best_eligible and load < best_load):
                best = egress
                best_load = load
                best_eligible = eligible
        if count > _LOOKS:
            self._turn = position
        return best  # type: ignore[return-value]  # there is at least one consumer


class Multicast(Forwarder):
    """A copy for every local link and for every consumer inside the router (2.4)."""

    __slots__ = ()

    def forward(
        self, source: InEndpoint, delivery: Delivery, data: bytes, start: int, end: int, message: Message | None
    ) -> int:
        """See ``Forwarder.forward``. The sender of an unsettled message hears one outcome for all copies."""
        count = len(self.consumers) + len(self.subscriptions)
        if count == 0:
            return 0
        self.inside = len(self.subscriptions)
        unsettled = not delivery.remote_settled
        if unsettled:
            delivery.copies = []
            delivery.context = Fanout(count)
        for each in list(self.consumers):
            egress = each
            out = egress.offer(source, delivery, data, start, end, message)
            if message is None:
                message = out.message
            if unsettled and out.partner is not None:
                delivery.copies.append(out)  # type: ignore[union-attr]
        for subscription in list(self.subscriptions):
            out = subscription.offer(source, delivery, data, start, end, message)
            if unsettled and out.partner is not None:
                delivery.copies.append(out)  # type: ignore[union-attr]
        return count


#: The rule by the name that configuration gives it (routing.md 5.1).
FORWARDERS: dict[str, type[Forwarder]] = {"closest": Closest, "balanced": Balanced, "multicast": Multicast}
