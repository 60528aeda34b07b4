"""How the frames of an incoming link become messages: gathered whole, or sent on while more frames come.

Obeys routing.md 2.7 (loss), 3.7-3.8 (streaming) and 4.4 (aborted). A message that is complete, or long enough, goes to
``_route``.
"""

from __future__ import annotations

from typing import Protocol

from trouter.engine.link import IncomingLink
from trouter.engine.link_base import Link
from trouter.engine.ports import Delivery, LinkPort
from trouter.wire import octets
from trouter.wire.order import SectionOrder
from trouter.wire.sections import InvalidMessage

from . import deliveries
from .annotations import CachedAnnotations
from .check import MessageCheck
from .egress import Egress
from .entry import AddressEntry
from .message import IncomingDelivery, Message
from .outcomes import FAILED_STATE, MODIFIED, REJECTED, rejected_state
from .ports import Pulse
from .settlement import Settlement

#: Bytes of an unfinished message to wait for before it is streamed (Q2's upper mark).
_STREAM_AT = 131072

INVALID_MESSAGE = rejected_state("amqp:decode-error", "invalid message format")


class MessageTap(Protocol):
    """The receiver of events about incoming messages; see ``MessageLog``."""

    def received(self, link: Link, message: bytes) -> None:
        """Note that a message came, or the beginning of one in several frames."""

    def aborted(self, link: Link) -> None:
        """Note that the sender aborted a message."""


class Intake(Settlement):
    """The messages of an incoming link, frame by frame, until the link ends."""

    __slots__ = ("_order", "_window_bytes", "check", "log", "prompt")

    def __init__(self, link: IncomingLink, pulse: Pulse, entry: AddressEntry | None, capacity: int) -> None:
        super().__init__(link, pulse, entry, capacity)
        self._window_bytes = self.link._session.window_bytes
        #: Unfinished messages are routed as soon as possible.
        self.prompt = False
        #: The tap of messages; None for none.
        self.log: MessageTap | None = None
        #: The check of messages; None for none.
        self.check: MessageCheck | None = None
        #: The order of sections in a message of several frames, if that is checked.
        self._order: SectionOrder | None = None

    def _route(self, delivery: IncomingDelivery, data: bytes, start: int, end: int, message: Message | None) -> None:
        """Forward the message, complete in ``data[start:end]`` or long enough; ``message`` if it has several frames.

        If more of it must come first it stays unrouted, and ``message.wanted`` is how many bytes to wait for.
        """
        raise LookupError

    def make_delivery(self, link: LinkPort) -> Delivery:
        """See ``LinkSink``."""
        return deliveries.new_incoming(link)

    def on_transfer(self, link: LinkPort, arrived: Delivery, data: bytes, start: int, end: int) -> None:
        """Route a whole message at once; gather a longer one until it is complete or long enough to stream."""
        delivery: IncomingDelivery = arrived  # type: ignore[assignment]  # made by ``make_delivery``
        message = delivery.message
        if message is None:
            delivery.arrived_at_s = self.pulse.now_s
            self.counters.deliveries += 1
            if delivery.remote_settled:
                delivery.settled = True
            else:
                self.unsettled += 1
            if self.link.credit <= 0:
                self.dry_since_s = delivery.arrived_at_s
            if delivery.complete:
                if self.log is not None:
                    self.log.received(self.link, data[start:end])
                self._route(delivery, data, start, end, None)
                if delivery.settled or self.link.credit <= 0 or self.via_edge or self.trunk is not None:
                    self._top_up()
                return
            if delivery.settled:
                self.unsettled += 1
            message = Message(self.link.session, self)
            message.wanted = _STREAM_AT if self.trunk is None else 1  # a neighbour's may be a stream
            delivery.message = message
            self._order = None if self.check is None else SectionOrder()
        self._continue(delivery, message, data, start, end)

    def _continue(self, delivery: IncomingDelivery, message: Message, data: bytes, start: int, end: int) -> None:
        """Process a later frame of a message, or the first of several."""
        message.complete = delivery.complete
        settled = delivery.settled
        if self._order is not None and not self._stands_in_order(delivery, message, data, start, end):
            self._order = None
        elif not message.routed:
            message.append(octets.cut(data, start, end))
            if message.complete or message.held >= message.wanted or self._must_not_wait(message):
                whole = message.join()
                if self.log is not None and self.trunk is None:
                    self._log_received(message, whole)
                self._route(delivery, whole, 0, len(whole), message)
        elif not message.discard:
            self._send_on(message, data, start, end)
        if delivery.remote_settled and not delivery.settled:
            settled = delivery.settled = True  # the flag came after the first frame
            self._relay_sender(delivery, 0, None, True)
            self._count_end(delivery, delivery.state_code)
        if delivery.complete:
            delivery.message = None
            if settled:
                self.unsettled -= 1
            elif delivery.outcome is not None and not delivery.settled:
                # it is from before the message was complete (4.4)
                self._finish(delivery, delivery.state_code, delivery.outcome or None)
            self._top_up()
        elif message.copies and self.link.session.held_bytes * 4 > self._window_bytes * 3:
            for each in message.copies[:]:
                copy = each
                egress: Egress = copy.link.sink  # type: ignore[assignment]
                egress.relieve(copy)

    def _log_received(self, message: Message, whole: bytes) -> None:
        """Log that a message came, once."""
        if not message.logged and self.log is not None:
            message.logged = True
            self.log.received(self.link, whole)

    def _stands_in_order(self, delivery: IncomingDelivery, message: Message, data: bytes, start: int, end: int) -> bool:
        """Check the next frame; if it breaks the order, abort the copies, reject the message, return False."""
        try:
            self._order.feed(data, start, end, delivery.complete)  # type: ignore[union-attr]  # the caller has checked
        except InvalidMessage:
            if message.copies:
                self._take_back(delivery)
                delivery.message = message
            self._refuse(delivery, message, REJECTED, INVALID_MESSAGE)
            return False
        return True

    def _send_on(self, message: Message, data: bytes, start: int, end: int) -> None:
        """Send a frame of a routed message to every copy; keep what a receiver does not take now."""
        if len(message.copies) == 1:
            only = message.copies[0]
            sole: Egress = only.link.sink  # type: ignore[assignment]
            start = sole.continue_with(only, message, data, start, end)
            if only.complete:
                return
            if start == end and not message.complete:
                return
        message.append(octets.cut(data, start, end))
        for each in message.copies[:]:
            copy = each
            egress: Egress = copy.link.sink  # type: ignore[assignment]
            egress.progress(copy)

    # --- whether an unfinished message waits

    def is_gathering(self) -> bool:
        """Return whether the sender has begun a delivery that was not forwarded yet."""
        partial: IncomingDelivery | None = self.link.partial  # type: ignore[assignment]  # made by ``make_delivery``
        return partial is not None and partial.message is not None and not partial.message.routed

    def _must_not_wait(self, message: Message) -> bool:
        """Return whether to wait no longer: unfinished messages fill half the window, and might all be stuck."""
        return message.wanted == _STREAM_AT and self.link.session.held_bytes * 2 > self._window_bytes

    def _waits_on(self, message: Message, max_bytes: int) -> bool:
        """Wait for more of an unfinished message; return False if ``max_bytes`` or too much is here already."""
        if message.held >= max_bytes or self.link.session.held_bytes * 4 > self._window_bytes * 3:
            return False
        more = message.held if message.held * 8 < self._window_bytes else self._window_bytes // 8
        message.wanted = message.held + (more if more > 0 else 1)
        if message.wanted > max_bytes:
            message.wanted = max_bytes
        return True

    def _must_gather(self, message: Message, annotations: CachedAnnotations | None) -> bool:
        """Return whether to wait for more of a neighbour's unfinished message, which is not marked as a stream."""
        if message.complete or self.prompt or message.held >= _STREAM_AT:
            return False
        if annotations is not None and annotations.parsed.stream:
            return False
        message.wanted = _STREAM_AT
        return not self._must_not_wait(message)

    # --- the end of unfinished messages

    def on_aborted(self, link: LinkPort, arrived: Delivery) -> None:
        """Drop a delivery that the sender aborted (4.4): only receivers of a part of it are notified."""
        delivery: IncomingDelivery = arrived  # type: ignore[assignment]  # made by ``make_delivery``
        if delivery.message is not None:  # else it was refused
            self._take_back(delivery)
            self.unsettled -= 1
            if self.log is not None:
                self.log.aborted(self.link)
        delivery.settled = True
        self._top_up()

    def _take_back(self, delivery: IncomingDelivery) -> None:
        message = delivery.message
        delivery.message = None
        if message is None:
            return
        message.aborted = True
        for each in message.copies[:]:
            out = each
            egress: Egress = out.link.sink  # type: ignore[assignment]
            egress.abort(out)
        # The copies get no further answer: one whose abort waits for its receiver's window must not be settled before.
        delivery.copies = None
        delivery.partner = None
        message.routed = True
        message.forget()

    def lost(self, own: list[Delivery] | None = None) -> None:
        """Abort unfinished input, and ignore outcomes still to come: the link is lost (2.7).

        ``own`` is the link's unsettled deliveries, if the caller knows them.
        """
        if self.link.partial is not None:
            self._take_back(self.link.partial)  # type: ignore[arg-type]  # made by ``make_delivery``
            self.link.partial = None
        ring = self.link._session.incoming
        if own is None and self.unsettled > 0:
            own = [each for each in ring.all() if each.link is self.link]
        if own is not None:
            for each in own:
                delivery: IncomingDelivery = each  # type: ignore[assignment]  # made by ``make_delivery``
                ring.remove(delivery.delivery_id)
                if delivery.copies is not None:
                    self._relay_sender(delivery, MODIFIED, FAILED_STATE, True)
                elif delivery.partner is not None:
                    delivery.partner.partner = None
                    delivery.partner = None
        self.unsettled = 0
