"""Sessions: windows, delivery ids and settlement (AMQP 1.0 part 2, 2.5 and 2.6.12).

Dispositions and flows of one pass over the input are merged (neighbouring ids with the same state become one range, all
credit of a link one flow); ``flush`` writes them at its end.
"""

from __future__ import annotations

from typing import Any

from trouter.wire.outgoing import write_disposition, write_flow, write_link_flow
from trouter.wire.performatives import Begin, End, Error, Performative
from trouter.wire.transfers import SHORT_STATES, DispositionReader, FlowReader

from .faults import Fault, Misuse, PeerFault
from .limits import EngineLimits
from .ports import (
    Budget,
    ConnectionPort,
    Delivery,
    LinkPort,
    LinkSink,
    SessionPort,
    advance_incoming,
    advance_outgoing,
)
from .refused import RefusedLink
from .ring import DeliveryRing
from .states import SESSION_NEXT, DeliveryStep, SessionState, SessionStep, advance

_MASK32 = 0xFFFFFFFF
_DECIDE = int(DeliveryStep.DECIDE)
_SETTLE_HERE = int(DeliveryStep.SETTLE_HERE)
_SETTLE_THERE = int(DeliveryStep.SETTLE_THERE)
#: The descriptor of the first outcome (part 3, 3.4); those below are states on the way to one.
_FIRST_OUTCOME = 0x24
_HALF = 0x80000000
_MAX_WINDOW = 0x7FFFFFFF
_DISPOSITION_OVERHEAD = 32
_FITS_ANYWHERE = 512 - _DISPOSITION_OVERHEAD


class Settlements:
    """The dispositions of one session in one role, gathered until ``write_disposition``."""

    __slots__ = ("_first", "_last", "_role", "_settled", "_state", "pending")

    def __init__(self, role: bool) -> None:
        self._role = role
        self._first = 0
        self._last = 0
        self._settled = False
        self._state: bytes | None = None
        self.pending = False

    def add_settlement(
        self, out: bytearray, channel: int, delivery_id: int, state: bytes | None, settled: bool
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

    def write_disposition(self, out: bytearray, channel: int) -> None:
        """Write the gathered disposition."""
        if self.pending:
            self.pending = False
            write_disposition(out, channel, self._role, self._first, self._last, self._settled, self._state)
            self._state = None


class Session(SessionPort):
    """One session: the windows of both directions, and every unsettled delivery."""

    __slots__ = (
        "_flow_due",
        "_last_handle",
        "_last_incoming_delivery",
        "_last_link",
        "_marked",
        "_receiver_settlements",
        "_sender_settlements",
        "_sessions_due",
        "_spare_handles",
        "context",
        "due_links",
        "handle_max",
        "incoming",
        "incoming_window",
        "limits",
        "links",
        "links_by_handle",
        "links_by_remote_handle",
        "next_delivery_id",
        "next_incoming_id",
        "next_outgoing_id",
        "outgoing",
        "promised_bytes",
        "refused_count",
        "remote_channel",
        "remote_handle_max",
        "reported",
        "sent_frames",
        "silent",
        "state",
        "waiting_links",
        "window_frames",
    )

    def __init__(
        self, connection: ConnectionPort, channel: int, limits: EngineLimits, sessions_due: list[Session]
    ) -> None:
        super().__init__(connection, channel)
        self.limits = limits
        self.state = SessionState.UNMAPPED
        #: One side has sent its end, or the connection is silent: every frame is ignored, except the peer's end. Kept
        #: for the data path; it follows from the two states.
        self.silent = False
        #: The holder was notified that the session is over, and has not dropped it yet. No state: it says what the
        #: holder has done, and a session that the engine itself ended waits for the holder before its END and in it.
        self.reported = False
        self.remote_channel = -1
        #: Bytes that its first window allows the peer to send.
        self.promised_bytes = 0
        self.handle_max = limits.handle_max
        self.remote_handle_max = _MASK32
        #: Transfer frames that the peer may still send, and the id of its next one.
        self.window_frames = limits.window_frames
        self.window_bytes = self.window_frames * limits.max_frame_bytes
        self.incoming_window = self.window_frames
        self.next_incoming_id = -1
        self.next_outgoing_id = limits.first_outgoing_id
        self.sent_frames = 0
        self.next_delivery_id = limits.first_outgoing_id
        #: Unsettled deliveries by id.
        self.incoming = DeliveryRing()
        self.outgoing = DeliveryRing()
        self.links: dict[tuple[bool, str], Any] = {}
        self.links_by_handle: dict[int, Any] = {}
        self.links_by_remote_handle: dict[int, Any] = {}
        #: Links that were refused and that the peer has not detached yet.
        self.refused_count = 0
        self.waiting_links: list[LinkPort] = []
        self.due_links: list[LinkPort] = []
        self.context: Any = None
        self._receiver_settlements = Settlements(True)
        self._sender_settlements = Settlements(False)
        self._sessions_due = sessions_due
        self._spare_handles: list[int] = []
        #: The link of the last transfer, as a cache. None whenever a handle loses its link.
        self._last_link: LinkPort | None = None
        self._last_handle = 0
        self._marked = False
        self._flow_due = False
        self._last_incoming_delivery = -1

    def replace_limits(self, limits: EngineLimits) -> None:
        """Replace the limits, before our begin is sent."""
        self.limits = limits
        self.handle_max = limits.handle_max
        self.window_frames = limits.window_frames
        self.window_bytes = self.window_frames * limits.max_frame_bytes
        self.incoming_window = self.window_frames

    def advance_state(self, step: SessionStep) -> None:
        """Change the state by ``step``; IllegalStep."""
        self.state = advance(SESSION_NEXT, self.state, step)
        self.mapped = self.state is SessionState.MAPPED

    def begin(self) -> None:
        """Send our begin, as the first or as the answer; do nothing if it was sent or the session is over."""
        if self.connection.silent or (self.state, SessionStep.SEND_BEGIN) not in SESSION_NEXT:
            return
        self.advance_state(SessionStep.SEND_BEGIN)
        self._narrow_first_window()
        self.connection.write(
            self.channel,
            Begin(
                remote_channel=self.remote_channel if self.remote_channel >= 0 else None,
                next_outgoing_id=self.next_outgoing_id,
                incoming_window=self.incoming_window,
                outgoing_window=_MAX_WINDOW,
                handle_max=self.handle_max,
            ),
        )

    def _narrow_first_window(self) -> None:
        """Narrow the window if the connection's other sessions leave too little room for its messages.

        So a peer that keeps to its windows never exceeds what the connection may hold, unless its windows are
        configured.
        """
        connection, frame_bytes = self.connection, self.limits.max_frame_bytes
        if not self.limits.session_window_frames:
            room = max(0, connection.buffer_limit - connection.promised_bytes) // 2
            frames = max(2, min(self.window_frames, room // frame_bytes))
            self.incoming_window -= self.window_frames - frames
            self.window_frames = frames
            self.window_bytes = frames * frame_bytes
        self.promised_bytes = self.window_bytes
        connection.promised_bytes += self.promised_bytes

    def end(self, error: Error | None = None) -> None:
        """Send our end after everything gathered; do nothing if it was sent before."""
        if self.state in _UNANSWERED:
            self.begin()
        step = SessionStep.SEND_END if error is None else SessionStep.SEND_END_ERROR
        if (self.state, step) in SESSION_NEXT:
            self.flush()
            self.advance_state(step)
            self.connection.write(self.channel, End(error))
            self.stop_writing()

    def write(self, performative: Performative) -> None:
        """Write a frame on the session's channel after the gathered settlements, unless the session is over."""
        if self.mapped or self.state is SessionState.BEGIN_SENT:
            self.write_settlements()
            self.connection.write(self.channel, performative)

    def stop_writing(self) -> None:
        """Send nothing more on this session or its links."""
        self.mapped = False
        self.silent = True
        for link in self.links_by_handle.values():
            link.attached = False

    def free_handle(self) -> int:
        """Return a handle of ours without a link; Misuse if the peer's handle-max leaves none."""
        used = len(self.links_by_handle) + self.refused_count
        handle = self._spare_handles.pop() if self._spare_handles else used
        if handle > self.remote_handle_max:
            raise Misuse(f"the peer allows no handle above {self.remote_handle_max}")
        return handle

    def release_remote_handle(self, handle: int) -> None:
        """Free this handle of the peer for another link."""
        self.links_by_remote_handle.pop(handle, None)
        self._last_link = None

    def release_handle(self, handle: int) -> None:
        """Free this handle of ours for another link."""
        self._spare_handles.append(handle)

    def release_name(self, link: LinkPort, named: tuple[bool, str]) -> None:
        """Free the name of a link that the peer has detached."""
        if self.links.get(named) is link:
            del self.links[named]

    def forget_link(self, handle: int) -> None:
        """Forget a link that both sides have detached."""
        if self.links_by_handle.pop(handle, None) is not None:
            self.connection.link_count -= 1
            self.release_handle(handle)

    def replace_by_refused(self, handle: int, remote_handle: int, named: tuple[bool, str]) -> None:
        """Keep of a refused link only its two handles, until the peer detaches it; its name is free at once."""
        link = self.links_by_handle.pop(handle, None)
        if link is None:
            return
        self.release_name(link, named)
        self.release_remote_handle(remote_handle)
        self.links_by_remote_handle[remote_handle] = RefusedLink(self, handle)
        self.connection.link_count -= 1
        self.count_refused(1)

    def count_refused(self, count: int) -> None:
        """Count ``count`` more links that were refused and that the peer has not detached."""
        self.refused_count += count
        self.connection.refused_count += count

    def drop_references(self) -> None:
        """Drop all links and deliveries, whose owners are done with them."""
        self.stop_writing()
        self.keep_bytes(-self.kept_bytes)
        self.count_refused(-self.refused_count)
        self._marked = True  # so that no caller asks for a flush
        for link in self.links_by_handle.values():
            link.sink = _NO_OWNER
        for links in (self.links, self.links_by_handle, self.links_by_remote_handle, self.waiting_links):
            links.clear()
        self.due_links.clear()
        self.incoming = DeliveryRing()
        self.outgoing = DeliveryRing()
        self._last_link = None
        self.context = None

    # --- what the peer sent

    def receive_begin(self, begin: Begin) -> None:
        """Apply the peer's begin: windows, ids, handle-max."""
        self.advance_state(SessionStep.RECEIVE_BEGIN)
        self.next_incoming_id = begin.next_outgoing_id
        self.remote_incoming_window = min(begin.incoming_window, _MAX_WINDOW)
        self.remote_handle_max = begin.handle_max

    def receive_end(self) -> None:
        """Apply the peer's end: the session is silent from now on."""
        self.advance_state(SessionStep.RECEIVE_END)
        self.stop_writing()

    def all_links(self) -> list[Any]:
        """Return every link that is not detached on both sides."""
        return list(self.links_by_handle.values())

    def admit_transfer(self, handle: int) -> LinkPort:
        """Count one transfer frame, and return the link that it is for; PeerFault."""
        if self.incoming_window <= 0:
            self._check_overrun(handle)
        self.incoming_window -= 1
        self.next_incoming_id = (self.next_incoming_id + 1) & _MASK32
        if self.incoming_window * 2 <= self.window_frames:
            self.request_flush()
        link = self._last_link
        if link is None or self._last_handle != handle:
            link = self.links_by_remote_handle.get(handle)
            if link is None:
                raise PeerFault(Fault.UNATTACHED_HANDLE, performative="transfer", handle=handle)
            self._last_link = link
            self._last_handle = handle
        return link

    def advertised_window(self) -> int:
        """Return the incoming window for a flow, in frames; 0 after a peer overran it."""
        return self.incoming_window if self.incoming_window > 0 else 0

    def _check_overrun(self, handle: int) -> None:
        """Accept frames beyond the window only for a begun delivery, and only for another window; PeerFault.

        Some clients check the window once per message and not once per frame.
        """
        link = self.links_by_remote_handle.get(handle)
        begun = link is not None and link.incoming and link.partial is not None
        if not begun or self.incoming_window <= -self.window_frames:
            raise PeerFault(Fault.WINDOW_VIOLATION)

    def check_delivery_id(self, delivery_id: int) -> None:
        """Check that a first transfer's delivery-id follows the last one; PeerFault."""
        if self._last_incoming_delivery >= 0:
            distance = (delivery_id - self._last_incoming_delivery) & _MASK32
            if distance == 0 or distance >= _HALF:
                raise PeerFault(
                    Fault.DELIVERY_ID,
                    detail=f"delivery-id {delivery_id} does not follow {self._last_incoming_delivery}",
                )
            if self.incoming.get(delivery_id) is not None:
                raise PeerFault(Fault.DELIVERY_ID, detail=f"delivery-id {delivery_id} is not settled yet")
        self._last_incoming_delivery = delivery_id

    def receive_disposition(self, disposition: DispositionReader) -> None:
        """Apply the peer's state to a range of deliveries; skip ids that are settled already. PeerFault."""
        first = disposition.first
        last = disposition.last
        ring = self.outgoing if disposition.role else self.incoming
        if first == last:
            delivery = ring.get(first)
            if delivery is not None:
                self._apply_disposition(ring, delivery, disposition)
            return
        if ((last - first) & _MASK32) >= _HALF:
            raise PeerFault(Fault.DISPOSITION_RANGE, first=first, last=last)
        for each in ring.between(first, last):
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

    def receive_flow(self, flow: FlowReader) -> None:
        """Apply the peer's window and, if it names a handle, that link's state; PeerFault."""
        opened = self.remote_incoming_window <= 0
        window = flow.incoming_window
        if flow.next_incoming_id >= 0:
            # Frames of ours that the peer had not seen when it wrote this. If its next-incoming-id is impossible (some
            # peers send 0 before they read our begin), it counts as having seen everything.
            unseen = (self.next_outgoing_id - flow.next_incoming_id) & _MASK32
            if unseen < _HALF and unseen <= self.sent_frames:
                window -= unseen
        else:
            window -= self.sent_frames
        self.remote_incoming_window = window if window < _MAX_WINDOW else _MAX_WINDOW
        if flow.handle >= 0:
            link = self.links_by_remote_handle.get(flow.handle)
            if link is None:
                raise PeerFault(Fault.UNATTACHED_HANDLE, performative="flow", handle=flow.handle)
            link.receive_flow(flow)
        elif flow.echo:
            self._flow_due = True
            self.request_flush()
        if opened and self.remote_incoming_window > 0:
            self.resume_links()

    # --- what we send

    def settle_incoming(self, delivery: Delivery, code: int, state: bytes | None, settled: bool) -> None:
        """Send the sender our state for one of its deliveries; with ``settled`` forget it."""
        if delivery.settled or delivery.remote_settled or not self.mapped:
            if settled:
                delivery.mark_settled()
            return
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
            self.connection.out, self.channel, delivery.delivery_id, state, settled
        )
        self.request_flush()

    def settle_outgoing(self, delivery: Delivery, code: int, state: bytes | None, settled: bool) -> None:
        """Send the receiver our state for a delivery that we sent; with ``settled`` forget it."""
        if delivery.settled or delivery.remote_settled or not delivery.begun or not self.mapped:
            if settled:
                delivery.mark_settled()
            return
        if settled:
            advance_outgoing(delivery, _SETTLE_HERE)
        delivery.state_code = code
        if state is not None and len(state) > _FITS_ANYWHERE:
            state = self._fitting_state(code, state)
        if settled:
            self.outgoing.remove(delivery.delivery_id)
        self._sender_settlements.add_settlement(self.connection.out, self.channel, delivery.delivery_id, state, settled)
        self.request_flush()

    def _fitting_state(self, code: int, state: bytes) -> bytes | None:
        """Return ``state``, or its outcome without details (None if unknown) if the peer's frames are too small."""
        if len(state) <= self.connection.remote_max_frame_bytes - _DISPOSITION_OVERHEAD:
            return state
        return SHORT_STATES.get(code)

    def add_incoming(self, delivery: Delivery) -> None:
        """Keep a delivery of the peer until one side has settled it."""
        self.incoming.append(delivery.delivery_id, delivery)

    def add_outgoing(self, delivery: Delivery) -> None:
        """Give a delivery of ours the next id, and keep it until one side has settled it."""
        delivery.delivery_id = self.next_delivery_id
        self.next_delivery_id = (self.next_delivery_id + 1) & _MASK32
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

    def spend_frame(self) -> None:
        """Count one transfer frame of ours in the peer's window."""
        self.remote_incoming_window -= 1
        self.sent_frames += 1
        self.next_outgoing_id = (self.next_outgoing_id + 1) & _MASK32

    def hold_bytes(self, count: int) -> None:
        """Count ``count`` bytes of this session as held, which narrows its window; PeerFault beyond a limit."""
        connection = self.connection
        budget = connection.budget
        if count > budget.limit - budget.held:
            raise PeerFault(Fault.MEMORY)
        if count > connection.buffer_limit - connection.buffered_bytes:
            raise PeerFault(Fault.BUFFERED, limit=connection.buffer_limit)
        budget.held += count
        connection.buffered_bytes += count
        self.held_bytes += count
        if self.shares is not None:
            self._count_in_shares(count)

    def release_bytes(self, count: int) -> None:
        """Count ``count`` bytes as no longer held; the next flush opens the window again."""
        connection = self.connection
        self.held_bytes -= count
        connection.budget.held -= count
        connection.buffered_bytes -= count
        if self.shares is not None:
            self._count_in_shares(-count)
        if self.incoming_window * 2 <= self.window_frames:
            self.request_flush()

    def keep_bytes(self, count: int) -> None:
        """Count ``count`` bytes more of attaches as kept, fewer if it is negative; PeerFault beyond the limit.

        They neither narrow the window nor count in the budget of messages, which ends the sessions of other peers.
        """
        connection = self.connection
        if count > 0 and count > connection.buffer_limit - connection.buffered_bytes:
            raise PeerFault(Fault.BUFFERED, limit=connection.buffer_limit)
        connection.buffered_bytes += count
        connection.kept_bytes += count
        self.kept_bytes += count
        self._count_in_shares(count)

    def count_in_budgets(self, shares: list[Budget] | None) -> None:
        """Count held and kept bytes in ``shares`` from now on, and no longer in the earlier ones."""
        self._count_in_shares(-self.held_bytes - self.kept_bytes)
        self.shares = shares
        self._count_in_shares(self.held_bytes + self.kept_bytes)

    def _count_in_shares(self, count: int) -> None:
        for each in self.shares or ():
            budget = each
            budget.held += count

    def wait_for_room(self, link: LinkPort) -> None:
        """Resume ``link`` once the peer's window and the output have room."""
        self.waiting_links.append(link)

    def request_flow(self, link: LinkPort) -> None:
        """Call ``write_flow`` of ``link`` with the next flush."""
        self.due_links.append(link)
        self.request_flush()

    def request_flush(self) -> None:
        """Request a flush of this session at the end of the pass."""
        if not self._marked:
            self._marked = True
            self._sessions_due.append(self)
            self.connection.touch()

    def flush(self) -> None:
        """Write the gathered dispositions and every flow that is due."""
        self._marked = False
        if not self.mapped:
            return
        self.write_settlements()
        self._reopen_window()
        if self.due_links:
            due = self.due_links
            self.due_links = []
            for each in due:
                link = each
                if link.write_flow():
                    self._flow_due = False
        if self._flow_due:
            self._flow_due = False
            write_flow(
                self.connection.out,
                self.channel,
                self.next_incoming_id,
                self.advertised_window(),
                self.next_outgoing_id,
                _MAX_WINDOW,
            )

    def write_link_flow(self, handle: int, delivery_count: int, credit: int, drain: bool) -> None:
        """Write a flow with the state of the session and of one link."""
        write_link_flow(
            self.connection.out,
            self.channel,
            self.next_incoming_id,
            self.advertised_window(),
            self.next_outgoing_id,
            _MAX_WINDOW,
            handle,
            delivery_count,
            credit,
            drain,
        )

    def write_settlements(self) -> None:
        """Write the gathered dispositions now, before a frame that must not overtake them."""
        if self._receiver_settlements.pending:
            self._receiver_settlements.write_disposition(self.connection.out, self.channel)
        if self._sender_settlements.pending:
            self._sender_settlements.write_disposition(self.connection.out, self.channel)

    def _reopen_window(self) -> None:
        if self.incoming_window * 2 > self.window_frames:
            return
        room = self.window_frames
        if self.held_bytes > 0:
            room = (self.window_bytes - self.held_bytes) * self.window_frames // self.window_bytes
        connection = self.connection
        budget = connection.budget
        scarce = budget.held * 2 > budget.limit or connection.buffered_bytes * 2 > connection.buffer_limit
        if scarce or (self.shares is not None and self._shares_run_out()):
            room = room // 8 if room >= 8 else room
        if room > 0 and room > self.incoming_window and self.incoming_window * 2 <= room:
            self.incoming_window = room
            self._flow_due = True

    def _shares_run_out(self) -> bool:
        for each in self.shares or ():
            budget = each
            if budget.held * 2 > budget.limit:
                return True
        return False

    def resume_links(self) -> None:
        """Resume the links that waited for the window or for room in the output, each in turn."""
        waiting = self.waiting_links
        self.waiting_links = []
        for position in range(len(waiting)):
            full = len(self.connection.out) >= self.connection.high_water
            if full or self.remote_incoming_window <= 0:
                self.connection.paused = self.connection.paused or full  # other sessions may have filled it
                self.waiting_links[:0] = waiting[position:]  # before the links that wait again
                return
            link = waiting[position]
            link.resume_sending()


#: The sink of links without an owner; it ignores every event.
_NO_OWNER = LinkSink()
_UNANSWERED = frozenset((SessionState.BEGIN_RECEIVED, SessionState.BEGIN_END_RECEIVED))
