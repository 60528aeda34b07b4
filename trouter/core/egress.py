"""Where deliveries leave: one outgoing link, its queue, and what its receiver says of them.

A delivery goes straight from the input into the receiver's output when there
is credit, window and room; otherwise it waits here. Outcomes travel back to
the sender as they come, encoded as they came (routing.md 2.4-2.9, 4.5, 4.6).
"""

from __future__ import annotations

from typing import Protocol

from trouter.engine import deliveries
from trouter.engine.link import OutgoingLink
from trouter.engine.ports import Delivery, LinkPort

from .backlog import Backlog
from .counters import AddressCounters, OriginTally
from .fanout import notify_sender
from .message import Message
from .messagelog import SentLog
from .outcomes import ACCEPTED, ACCEPTED_STATE, FAILED_STATE, MODIFIED, RELEASED, RELEASED_STATE
from .outstanding import Outstanding
from .pace import Pace
from .ports import AddressPort, InEndpoint, Pulse, TrunkPort

_FIRST_OUTCOME = 0x24
_LAST_OUTCOME = 0x27
#: Places that deliveries of one link are counted by; more are not told apart, nor shown.
_MAX_ORIGINS = 256


class StreamLinks(Protocol):
    """The links of one connection that are for unfinished messages; see ``Streams``."""

    def take(self) -> Egress | None:
        """Return a link for the message that is offered to it next; None if there can be no more."""


class Egress(Backlog):
    """One outgoing link: its deliveries, waiting and unsettled."""

    __slots__ = (
        "_last_origin",
        "_last_tally",
        "attached_at_s",
        "capacity",
        "connection_number",
        "dry_since_s",
        "entered_here",
        "entered_there",
        "identity",
        "lent",
        "log",
        "max_unsettled",
        "pace",
        "plain",
        "presettles",
        "entry",
        "streams",
        "totals",
        "trunk",
        "unsettled",
    )

    def __init__(self, link: OutgoingLink, pulse: Pulse, capacity: int, plain: bool, presettles: bool) -> None:
        super().__init__(link, pulse)
        self.capacity = capacity
        #: Router annotations are left out of what is sent.
        self.plain = plain
        #: The receiver asked for settled deliveries only.
        self.presettles = presettles
        self.unsettled = 0
        #: As many unsettled deliveries as the receiver may have; more wait until it has settled some.
        self.max_unsettled = 1 << 62
        #: The address that it serves; None on a link that serves none, or serves it no longer.
        self.entry: AddressPort | None = None
        #: The connection to another router that it is on; None on other connections.
        self.trunk: TrunkPort | None = None
        #: Deliveries that came to it and had entered the network here, and elsewhere, by how annotations name the
        #: place; those of the latter that came last.
        self.entered_here = 0
        self.entered_there: dict[str, OriginTally] = {}
        self._last_origin: str | None = None
        self._last_tally: OriginTally | None = None
        #: Where links are taken from for unfinished messages, which this one would otherwise carry, or None; and how
        #: many of its deliveries are unsettled on such links.
        self.streams: StreamLinks | None = None
        self.lent: Outstanding | None = None
        #: Where messages are logged, None for nowhere.
        self.log: SentLog | None = None
        #: Where the router counts what goes to route containers; None where the peer is none.
        self.totals: AddressCounters | None = None
        #: What management calls the link, and the connection it is on; 0 until the router gives it one.
        self.identity = 0
        self.connection_number = 0
        self.attached_at_s = pulse.now_s
        self.pace = Pace(pulse.now_s)
        #: When the receiver's credit ran out, as long as it is out; negative for not known.
        self.dry_since_s = pulse.now_s

    def load(self) -> int:
        """Return how many deliveries wait or are unsettled, by which balanced distribution chooses (routing.md 2.3)."""
        if self.lent is None:
            return self.backlog + self.unsettled
        return self.backlog + self.unsettled + self.lent.count

    def lend_from(self, streams: StreamLinks | None) -> None:
        """Send unfinished messages over links of ``streams`` from here on, where it has any; None for nowhere."""
        if streams is not None:
            self.streams = streams
            self.lent = Outstanding()

    # --- sending

    def offer(
        self, source: InEndpoint, delivery: Delivery, data: bytes, start: int, end: int, message: Message | None
    ) -> Delivery:
        """Send a copy of ``delivery``, now or later; the copy.

        The message is whole in ``data[start:end]``, as ``source`` knows it, or it is ``message``.
        """
        if self.streams is not None and message is not None and not message.complete:
            stream = self.streams.take()
            if stream is not None:
                return self._lend(stream, source, delivery, message)
        out = deliveries.new_delivery(self.link)
        pulse = self.pulse
        out.tag = delivery.tag
        out.number = pulse.next_tag
        pulse.next_tag = out.number + 1
        out.arrived_at = delivery.arrived_at
        out.message_format = delivery.message_format
        out.transfer_state = delivery.transfer_state
        if source.trunk is None:
            self.entered_here += 1
        elif self.trunk is None:
            self._note_origin(source.arrival.origin)
        if delivery.remote_settled:
            out.settled = True
        else:
            out.partner = delivery
            out.settled = self.presettles
        link = self.link
        if self.totals is not None:
            self.totals.egress_container += 1
            self.entry.counters.egress_container += 1  # type: ignore[union-attr]  # what counts has an address
        if self.log is not None:
            self.log.offered(out, data[start:end] if message is None else message.begin())
        if message is None:
            if self.backlog == 0 and self._may_begin(link):
                if self.plain and not source.arrival.rewrites:
                    out.offset = link.send(out, data, start, end, False) - start
                else:
                    written = source.write(data, start, end, self.plain)
                    out.offset = link.send(out, written, 0, len(written), False)
                if out.complete:
                    self._sent(out)
                    return out
                message = source.build_message(delivery, data, start, end)
            else:
                message = source.build_message(delivery, data, start, end)
        message.add(out)
        if self.backlog == 0 and (self._may_begin(link) or (out.begun and link.attached and not link.waiting)):
            self._push(out, message)
            if out.complete:
                return out
        if out.settled:
            if 0 < self.capacity <= self.backlog:
                self._drop_presettled()
            if out.partner is None:
                self._may_drop(out)
        self.queue.append(out)
        self.backlog += 1
        return out

    def _lend(self, stream: Egress, source: InEndpoint, delivery: Delivery, message: Message) -> Delivery:
        """Send a copy of an unfinished message over a link of its own; the copy counts as one of this link's load."""
        out = stream.offer(source, delivery, b"", 0, 0, message)
        if self.lent is not None and not out.settled:
            self.lent.count += 1
            out.context = self.lent
        return out

    def _note_origin(self, origin: str) -> None:
        """Count a delivery that came from another router."""
        tally = self._last_tally if origin is self._last_origin else None
        if tally is None:
            tally = self.entered_there.get(origin)
            if tally is None:
                if len(self.entered_there) >= _MAX_ORIGINS:
                    return
                tally = self.entered_there[origin] = OriginTally()
            self._last_origin = origin
            self._last_tally = tally
        tally.count += 1

    def _may_begin(self, link: OutgoingLink) -> bool:
        """Whether one more delivery may go out now."""
        return link.credit > 0 and self.unsettled < self.max_unsettled and link.attached and not link.waiting

    def continue_with(self, out: Delivery, message: Message, data: bytes, start: int, end: int) -> int:
        """Send on what more has come of a message, uncopied if ``out`` can take it; return how far it went in ``data``.

        Called only while ``out`` is the message's single copy.
        """
        link = self.link
        if (
            link.attached
            and not link.waiting
            and out.begun
            and not out.complete
            and out.chunk - message.first >= len(message.chunks)
            and self._is_next(out)
        ):
            start = link.send(out, data, start, end, not message.complete)
            if out.complete:
                self._take_next()  # type: ignore[unreachable]
                message.leave(out)
                self._sent(out)
                if self.backlog > 0 or link.drain:
                    self.on_credit(link)
        return start

    def progress(self, out: Delivery) -> None:
        """Send more of ``out``, of whose message more has come."""
        if self._is_next(out):
            self.on_credit(self.link)

    def on_credit(self, link: LinkPort) -> None:
        """Send what credit, window and output room allow; give the rest of the credit back if a drain asks for it."""
        sender = self.link
        if sender.credit > 0:
            self.dry_since_s = -1.0
        while self.backlog > 0:
            out = self.queue[0]
            if not (out.begun or self._may_begin(sender)) or sender.waiting or not sender.attached:
                break
            message = out.message
            self._push(out, message)
            if not out.complete:
                break
            if out.settled:
                self.counters.count(0, self.pulse.now_s - out.arrived_at)
            self._take_next()
        if self.backlog == 0 and self._presettled:
            self._presettled.clear()
        self._give_back_credit()
        if sender.credit == 0 and self.dry_since_s < 0:
            self.dry_since_s = self.pulse.now_s

    def _give_back_credit(self) -> None:
        """Give the rest of the credit back, if the receiver drains the link and nothing waits."""
        sender = self.link
        if sender.drain and sender.credit > 0 and not sender.waiting and (self.backlog == 0 or not self.queue[0].begun):
            sender.drained()

    def _push(self, out: Delivery, message: Message) -> None:
        """Send as much of the message as there is and as the link takes."""
        link = self.link
        while not out.complete:
            piece = message.piece(out.chunk, self.plain) if out.chunk > 0 else message.head_of(out, self.plain)
            if piece is None:
                if message.complete and not message.discard:
                    link.send(out, b"", 0, 0, False)
                break
            last = message.ends_with(out.chunk)
            size = len(piece)
            out.offset = link.send(out, piece, out.offset, size, not last)
            if out.offset < size or (last and not out.complete):
                break
            out.chunk += 1
            out.offset = 0
        if out.complete:
            message.leave(out)
            self._sent(out)
        else:
            message.trim()

    def _sent(self, out: Delivery) -> None:
        """The last frame of ``out`` is written."""
        self.counters.deliveries += 1
        if self.link.credit == 0:
            self.dry_since_s = self.pulse.now_s
        if self.log is not None:
            self.log.sent(out)
        if not out.settled:
            self.unsettled += 1
            return
        self.counters.presettled += 1
        self._done(out)
        partner = out.partner
        if partner is not None:  # the receiver wanted it settled, the sender did not: we accept for the receiver
            out.partner = None
            notify_sender(out, partner, ACCEPTED, ACCEPTED_STATE, True)

    # --- what the receiver says

    def on_disposition(self, out: Delivery) -> None:
        """Relay the receiver's state and settlement to the sender."""
        partner = out.partner
        settled = out.remote_settled
        if not out.complete:
            if settled or _FIRST_OUTCOME <= out.remote_code <= _LAST_OUTCOME:
                settled = True  # it will not get the rest
                self._give_up(out)
        elif settled:
            self._settled_one()
        if settled:
            self.counters.count(out.remote_code, self.pulse.now_s - out.arrived_at)
            out.partner = None
            self._done(out)
        if partner is not None:
            notify_sender(out, partner, out.remote_code, out.remote_state, settled)
        elif not settled and out.remote_code >= _FIRST_OUTCOME:
            # no sender waits for this outcome: close it
            self._settle(out, out.remote_code, out.remote_state)

    def _settled_one(self) -> None:
        """The receiver has one unsettled delivery less; what waited for that may go out."""
        self.unsettled -= 1
        if self.backlog > 0 and self.unsettled + 1 == self.max_unsettled:
            self.on_credit(self.link)

    def _give_up(self, out: Delivery) -> None:
        """The receiver decided on a delivery of which the rest has not been sent."""
        if out.message is not None:
            out.message.leave(out)
        self.link.abort(out)
        if self._is_next(out):
            self._take_next()
        self.on_credit(self.link)

    def _done(self, out: Delivery) -> None:
        """``out`` is under way to another router no longer."""
        if isinstance(out.context, Outstanding):
            outstanding = out.context
            outstanding.count -= 1
            out.context = None

    def _settle(self, out: Delivery, code: int, state: bytes | None) -> None:
        """Settle towards the receiver, if ``out`` is not settled yet."""
        self._done(out)
        if not (out.settled or out.remote_settled):
            out.link.session.settle_outgoing(out, code, state, True)
            if out.complete:
                self._settled_one()
                self.counters.count(out.remote_code, self.pulse.now_s - out.arrived_at)

    # --- what the sender says

    def sender_says(self, out: Delivery, code: int, state: bytes | None, settled: bool) -> None:
        """Relay the sender's state or settlement to the receiver; one that is not sent yet becomes pre-settled."""
        if settled:
            out.partner = None
            if out.begun:
                self._settle(out, code, state)
            else:
                out.settled = True
                self._done(out)
                self._may_drop(out)
        else:
            out.link.session.settle_outgoing(out, code, state, False)

    def abort(self, out: Delivery) -> None:
        """Take back what was sent of a message that will never be complete; forget it if nothing was."""
        out.partner = None
        self._done(out)
        if out.message is not None:
            out.message.leave(out)
        if self._is_next(out):
            self._take_next()
        elif out in self.queue:
            self._take_out(out)
        if out.begun:
            self.link.abort(out)
        else:
            out.complete = out.aborted = True
        self.on_credit(self.link)

    def relieve(self, out: Delivery) -> None:
        """Release a message that waits for another to end: ``out``'s session has hardly any window left.

        The other may need that very window for its end, and then neither would ever go on. Of an exchange's copies,
        whose outcome no sender waits for, one that waits is dropped if the message goes on without it.
        """
        if not out.begun and self._may_do_without(out):
            self._take_out(out)
            self._give_back(out)
            out.complete = out.aborted = True
            return
        if out.begun or self._is_next(out) or self.backlog == 0:
            return
        ahead: Message | None = self.queue[0].message
        if ahead is None or ahead.complete:
            return
        self._take_out(out)
        self._give_back(out)
        out.complete = out.aborted = True

    def _may_do_without(self, out: Delivery) -> bool:
        message: Message | None = out.message
        if message is None or message.heads is None or not out.settled or out.partner is not None:
            return False
        if message.complete:
            return True
        for each in message.copies:
            copy: Delivery = each
            if copy.begun:
                return True
        return False

    def cut_off(self, out: Delivery) -> None:
        """Cut off a pre-settled message, for which others wait, and of which its receiver takes no more."""
        self._count_dropped()
        self.abort(out)

    # --- the end

    def give_up(self) -> None:
        """Fail what a silent peer was sent, and release what waits for it. The link stays.

        Should the other side be heard of again, it learns that all this is settled.
        """
        session = self.link._session
        for out in [each for each in self.queue if not each.aborted]:
            self._take_out(out)
            if out.begun:
                self.link.abort(out)
            self._give_back(out)
            out.complete = out.aborted = True
        for out in [each for each in session.outgoing.all() if each.link is self.link]:
            code, state, partner = out.remote_code, out.remote_state, out.partner
            if state is None or not _FIRST_OUTCOME <= code <= _LAST_OUTCOME:
                code, state = out.remote_code, out.remote_state = MODIFIED, FAILED_STATE
            out.partner = None
            self._settle(out, code, state)
            if partner is not None:
                notify_sender(out, partner, code, state, True)

    def lost(self, own: list[Delivery] | None = None) -> None:
        """Fail what the link, which is gone, had in full, and release what it had not (routing.md 2.7).

        ``own`` holds the link's deliveries if the caller knows them already.
        """
        waiting = [each for each in self.queue if not each.aborted]
        self.queue.clear()
        self._presettled.clear()
        self.backlog = self._dropped = 0
        session = self.link._session
        if own is None and (self.unsettled > 0 or waiting):
            own = [each for each in session.outgoing.all() if each.link is self.link]
        for out in waiting:
            self._give_back(out)
        for out in own or ():
            session.forget_outgoing(out)
            if out.complete:
                code = out.remote_code
                state = out.remote_state
                if state is None or not _FIRST_OUTCOME <= code <= _LAST_OUTCOME:
                    code = MODIFIED
                    state = FAILED_STATE
                self.counters.count(code, self.pulse.now_s - out.arrived_at)
                self._notify_lost(out, code, state)
        self.unsettled = 0

    def _give_back(self, out: Delivery) -> None:
        """``out``, not sent in full, never will be: released, or dropped if its sender does not wait for an outcome."""
        if out.settled and out.partner is None:
            self._count_dropped()
        if out.message is not None:
            out.message.leave(out)
        self._notify_lost(out, RELEASED, RELEASED_STATE)

    def _notify_lost(self, out: Delivery, code: int, state: bytes) -> None:
        self._done(out)
        partner = out.partner
        if partner is not None:
            out.partner = None
            notify_sender(out, partner, code, state, True)
