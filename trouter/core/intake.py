"""How the frames of an incoming link become messages: gathered whole, or sent on while the rest still comes.

Obeys routing.md 2.7 (loss), 3.7-3.8 (streaming) and 4.4 (aborted). A message that is here, or long enough, is given to
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

from .annotations import CachedAnnotations
from .check import MessageCheck
from .egress import Egress
from .entry import AddressEntry
from .message import Message
from .outcomes import FAILED_STATE, MODIFIED, REJECTED, rejected_state
from .ports import Pulse
from .settlement import Settlement

#: Octets of an unfinished message that are waited for before it is sent on piece by piece (Q2's upper mark).
_STREAM_AT = 131072

INVALID_MESSAGE = rejected_state("amqp:decode-error", "invalid message format")


class MessageTap(Protocol):
    """Is notified of messages that come in; see ``MessageLog``."""

    def received(self, link: Link, message: bytes) -> None:
        """Note that a message came, or the beginning of one in several frames."""

    def aborted(self, link: Link) -> None:
        """Note that a message was taken back by its sender."""


class Intake(Settlement):
    """What comes in on a link, frame by frame, until it ends."""

    __slots__ = ("_order", "_window_bytes", "check", "log", "prompt")

    def __init__(self, link: IncomingLink, pulse: Pulse, entry: AddressEntry | None, capacity: int) -> None:
        super().__init__(link, pulse, entry, capacity)
        self._window_bytes = self.link._session.window_bytes
        #: An unfinished message is routed as soon as it can be.
        self.prompt = False
        #: Where messages are logged or read besides, None for nowhere.
        self.log: MessageTap | None = None
        #: What messages are held to, None for nothing.
        self.check: MessageCheck | None = None
        #: How far a message in several frames keeps to the order of sections, where that is checked.
        self._order: SectionOrder | None = None

    def _route(self, delivery: Delivery, data: bytes, start: int, end: int, message: Message | None) -> None:
        """Send on the message, whole in ``data[start:end]`` or long enough; ``message`` if it came in several frames.

        One of which more has to come first stays unrouted; what it is to wait for is ``message.wanted`` then.
        """
        raise LookupError

    def on_transfer(self, link: LinkPort, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        """Route a whole message at once; gather a longer one until it is complete or long enough to stream."""
        message: Message | None = delivery.message
        if message is None:
            delivery.arrived_at = self.pulse.now_s
            self.counters.deliveries += 1
            if delivery.remote_settled:
                delivery.settled = True
            else:
                self.unsettled += 1
            if self.link.credit <= 0:
                self.dry_since_s = delivery.arrived_at
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
            message.wanted = _STREAM_AT if self.trunk is None else 1  # which may not be for waiting
            delivery.message = message
            self._order = None if self.check is None else SectionOrder()
        self._continue(delivery, message, data, start, end)

    def _continue(self, delivery: Delivery, message: Message, data: bytes, start: int, end: int) -> None:
        """The next frame of a message in several."""
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
            settled = delivery.settled = True  # the flag came on a later frame than the first
            self._relay_sender(delivery, 0, None, True)
            self._count_end(delivery, delivery.state_code)
        if delivery.complete:
            delivery.message = None
            if settled:
                self.unsettled -= 1
            elif isinstance(delivery.context, bytes) and not delivery.settled:
                # an outcome from before the input was complete (4.4)
                self._finish(delivery, delivery.state_code, delivery.context or None)
            self._top_up()
        elif message.copies and self.link.session.held_bytes * 4 > self._window_bytes * 3:
            for each in message.copies[:]:
                copy = each
                egress: Egress = copy.link.sink  # type: ignore[assignment]
                egress.relieve(copy)

    def _log_received(self, message: Message, whole: bytes) -> None:
        """Log that a message came; once, however often it is looked at."""
        if not message.logged and self.log is not None:
            message.logged = True
            self.log.received(self.link, whole)

    def _stands_in_order(self, delivery: Delivery, message: Message, data: bytes, start: int, end: int) -> bool:
        """Check the next frame of a message; one that breaks the order is taken back and rejected as a whole."""
        try:
            self._order.feed(data, start, end, delivery.complete)  # type: ignore[union-attr]  # the caller looked
        except InvalidMessage:
            if message.copies:
                self._take_back(delivery)
                delivery.message = message
            self._refuse(delivery, message, REJECTED, INVALID_MESSAGE)
            return False
        return True

    def _send_on(self, message: Message, data: bytes, start: int, end: int) -> None:
        """Pass a frame of a message on its way to every copy; what no receiver takes now is kept."""
        if len(message.copies) == 1:
            only: Delivery = message.copies[0]
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

    # --- an unfinished message waits, or goes on

    def _must_not_wait(self, message: Message) -> bool:
        """Unfinished messages fill half of what the session takes in: wait no longer, or none of them could go on."""
        return message.wanted == _STREAM_AT and self.link.session.held_bytes * 2 > self._window_bytes

    def _waits_on(self, message: Message, max_bytes: int) -> bool:
        """Wait for more of an unfinished message before looking at it again, unless ``most`` octets are here."""
        if message.held >= max_bytes or self.link.session.held_bytes * 4 > self._window_bytes * 3:
            return False
        more = message.held if message.held * 8 < self._window_bytes else self._window_bytes // 8
        message.wanted = message.held + (more if more > 0 else 1)
        if message.wanted > max_bytes:
            message.wanted = max_bytes
        return True

    def _must_gather(self, message: Message, annotations: CachedAnnotations | None) -> bool:
        """A neighbour's unfinished message, on a link for whole ones, that no receiver wants piece by piece."""
        if message.complete or self.prompt or message.held >= _STREAM_AT:
            return False
        if annotations is not None and annotations.parsed.stream:
            return False
        message.wanted = _STREAM_AT
        return not self._must_not_wait(message)

    # --- the end of what was not finished

    def on_aborted(self, link: LinkPort, delivery: Delivery) -> None:
        """Drop a delivery that the sender aborted (4.4): only receivers that got part of it are notified."""
        if delivery.message is not None:  # else it never began
            self._take_back(delivery)
            self.unsettled -= 1
            if self.log is not None:
                self.log.aborted(self.link)
        delivery.settled = True
        self._top_up()

    def _take_back(self, delivery: Delivery) -> None:
        message: Message | None = delivery.message
        delivery.message = None
        if message is None:
            return
        message.aborted = True
        for each in message.copies[:]:
            out = each
            egress: Egress = out.link.sink  # type: ignore[assignment]
            egress.abort(out)
        # Nothing more is said to the copies: one whose abort waits for its receiver's window must not settle before.
        delivery.copies = None
        delivery.partner = None
        message.routed = True
        message.forget()

    def lost(self, own: list[Delivery] | None = None) -> None:
        """Take back unfinished input, and drop outcomes still to come: the link is gone (2.7).

        ``own`` holds the link's deliveries if the caller knows them already.
        """
        if self.link.partial is not None:
            self._take_back(self.link.partial)
            self.link.partial = None
        ring = self.link._session.incoming
        if own is None and self.unsettled > 0:
            own = [each for each in ring.all() if each.link is self.link]
        if own is not None:
            for each in own:
                delivery = each
                ring.remove(delivery.delivery_id)
                if delivery.copies is not None:
                    self._relay_sender(delivery, MODIFIED, FAILED_STATE, True)
                elif delivery.partner is not None:
                    delivery.partner.partner = None
                    delivery.partner = None
        self.unsettled = 0
