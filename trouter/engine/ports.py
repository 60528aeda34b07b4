"""What the parts of a connection call on one another.

A link writes through its session and a session through its connection. This module holds what the lower parts call on
the upper ones, the windows of a session, the delivery that all pass around, and the sink that notifies a link's owner
(the router's core, a client). These calls are the data path: one typed call per transfer, disposition and flow, no
object per frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Protocol

from .faults import Fault, PeerFault
from .states import (
    ABORTED,
    BEGUN,
    COMPLETE,
    INCOMING_NEXT,
    OUTGOING_NEXT,
    SETTLED_HERE,
    SETTLED_THERE,
    DeliveryState,
    DeliveryStep,
    IllegalStep,
    flat,
)

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int
    from cython import uint as c_uint

    from trouter.wire.performatives import Begin, Performative
    from trouter.wire.transfers import FlowReader, TransferReader

    from .limits import EngineLimits


#: The tables of deliveries for the data path: after a state and a step (three bits), the following state, 0 for an
#: illegal step (none leads back to the first state); and five flags for each state.
_INCOMING: Final[Annotated[bytes, "unsigned char[112]"]] = flat(INCOMING_NEXT, DeliveryState, 8)
_OUTGOING: Final[Annotated[bytes, "unsigned char[112]"]] = flat(OUTGOING_NEXT, DeliveryState, 8)
_FLAGS: Final[Annotated[list[bool], "int[70]"]] = [
    state in flag for state in DeliveryState for flag in (BEGUN, COMPLETE, ABORTED, SETTLED_HERE, SETTLED_THERE)
]
_MASK32: Final[Py_ssize_t] = 0xFFFFFFFF
_HALF: Final[Py_ssize_t] = 0x80000000
_MAX_WINDOW: Final[Py_ssize_t] = 0x7FFFFFFF
_SETTLE_HERE: Final[c_int] = int(DeliveryStep.SETTLE_HERE)
_DROP: Final[c_int] = int(DeliveryStep.DROP)


class Event:
    """A rare step of the peer; ``events`` has them all."""

    __slots__ = ()


class Budget:
    """Bytes of messages that all connections of a process hold together, and their limit.

    Beyond half of ``limit`` the windows of sessions open an eighth as far; beyond all of it, a peer that sends more is
    refused.
    """

    __slots__ = ("held", "limit")

    def __init__(self, limit: Py_ssize_t) -> None:
        self.held: Py_ssize_t = 0
        self.limit = limit


class ConnectionOwner(Protocol):
    """What is asked of whoever serves a connection, once for each time that it has output."""

    def write_output(self) -> None:
        """Write what stands in the output of the connection."""

    def drop_after_bug(self, error: Exception) -> None:
        """End the connection because of a bug of ours."""


class LinkHolder:
    """Base of whatever attached a link, or joined it to another; the engine asks nothing of it."""

    __slots__ = ()


class SessionHolder:
    """Base of whatever began a session; the engine asks nothing of it."""

    __slots__ = ()


class ConnectionPort:
    """What a session needs of its connection: the output, and a flush at the end of the pass."""

    __slots__ = (
        "budget",
        "out",
        "outbox",
        "owner",
        "touched",
        "paused",
        "wrote",
        "silent",
        "link_count",
        "refused_count",
        "kept_bytes",
        "buffered_bytes",
        "buffer_limit",
        "promised_bytes",
        "overrun_frames",
        "overrun_limit",
        "remote_max_frame_bytes",
        "high_water",
        "work",
    )

    def __init__(self, outbox: list[ConnectionPort], budget: Budget) -> None:
        self.out = bytearray()
        self.budget = budget
        self.outbox = outbox
        #: Who serves the connection, until it has ended.
        self.owner: ConnectionOwner | None = None
        self.touched = False
        #: Links wait because the output is at its high-water mark; ``resume_output`` resumes them.
        self.paused = False
        #: Something was written since the last tick.
        self.wrote = False
        #: A close was sent or received, or the holder is done with the connection: sessions and links write nothing
        #: more. Kept for the data path.
        self.silent = False
        self.link_count: Py_ssize_t = 0
        #: Links that were refused and that the peer has not detached yet.
        self.refused_count: Py_ssize_t = 0
        #: Bytes that are kept of the peer's open and attaches beyond those of ordinary ones.
        self.kept_bytes: Py_ssize_t = 0
        #: Bytes that its sessions hold, with ``kept_bytes``; their limit; and those that the first windows allow.
        self.buffered_bytes: Py_ssize_t = 0
        self.buffer_limit: Py_ssize_t = 1 << 62
        self.promised_bytes: Py_ssize_t = 0
        #: Transfer frames that were accepted beyond the windows of its sessions, until these open again; and the most.
        self.overrun_frames: Py_ssize_t = 0
        self.overrun_limit: Py_ssize_t = 0
        self.remote_max_frame_bytes: Py_ssize_t = 512
        self.high_water: Py_ssize_t = 512 * 1024
        #: The work of the present input so far, see ``EngineLimits.max_work``.
        self.work: Py_ssize_t = 0

    def touch(self) -> None:
        """Request a flush at the end of the pass."""
        if not self.touched:
            self.touched = True
            self.wrote = True
            self.outbox.append(self)

    def flush(self) -> None:
        """Write what was gathered into the output; to be called once for each that stands in the outbox."""
        raise Unconnected

    def write(self, channel: c_int, performative: Performative) -> None:
        """Write a frame with ``performative`` and no payload."""
        raise Unconnected

    def report(self, event: Event) -> None:
        """Report ``event`` to the holder of the connection."""
        raise Unconnected


class SessionWindows:
    """The windows of a session in both directions, and the bytes held over it, which close the peer's window.

    ``incoming_frames`` is the number of transfer frames that the peer may still send, ``outgoing_frames`` of those that
    we may.
    """

    __slots__ = (
        "_connection",
        "incoming_frames",
        "max_incoming_frames",
        "max_incoming_bytes",
        "outgoing_frames",
        "next_incoming_id",
        "next_outgoing_id",
        "sent_frames",
        "promised_bytes",
        "held_bytes",
        "kept_bytes",
        "shares",
    )

    def __init__(self, connection: ConnectionPort, limits: EngineLimits) -> None:
        self._connection = connection
        self.replace_limits(limits)
        self.outgoing_frames: Py_ssize_t = 0
        #: The ids of the next transfer frame of both sides, -1 before the peer's begin; and how many we have sent.
        self.next_incoming_id: Py_ssize_t = -1
        self.next_outgoing_id: Py_ssize_t = limits.first_outgoing_id
        self.sent_frames: Py_ssize_t = 0
        #: Bytes that the first window allows the peer to send.
        self.promised_bytes: Py_ssize_t = 0
        #: Bytes received over this session and not yet sent on.
        self.held_bytes: Py_ssize_t = 0
        #: Bytes kept of the attaches of its links.
        self.kept_bytes: Py_ssize_t = 0
        #: Budgets that count both besides the connection's; None for none.
        self.shares: list[Budget] | None = None

    def replace_limits(self, limits: EngineLimits) -> None:
        """Open the peer's window as far as ``limits`` allow, before our begin is sent."""
        self.max_incoming_frames: Py_ssize_t = limits.window_frames
        self.max_incoming_bytes: Py_ssize_t = self.max_incoming_frames * limits.max_frame_bytes
        self.incoming_frames: Py_ssize_t = self.max_incoming_frames

    # --- frames of the peer

    def promise_first_window(self, limits: EngineLimits) -> None:
        """Promise the peer its first window, a narrow one if the other sessions leave too little room.

        So a peer that keeps to its windows never exceeds what the connection may hold, unless its windows are
        configured.
        """
        connection, frame_bytes = self._connection, limits.max_frame_bytes
        if not limits.session_window_frames:
            room = max(0, connection.buffer_limit - connection.promised_bytes) // 2
            frames = max(2, min(self.max_incoming_frames, room // frame_bytes))
            self.incoming_frames -= self.max_incoming_frames - frames
            self.max_incoming_frames = frames
            self.max_incoming_bytes = frames * frame_bytes
        self.promised_bytes = self.max_incoming_bytes
        connection.promised_bytes += self.promised_bytes

    def count_received_frame(self) -> bool:
        """Count a transfer frame of the peer; return whether half of its window is used."""
        self.incoming_frames -= 1
        self.next_incoming_id = (self.next_incoming_id + 1) & _MASK32
        return self.incoming_frames * 2 <= self.max_incoming_frames

    def check_overrun(self, begun: bool) -> None:
        """Count a frame beyond the window, before ``count_received_frame``; PeerFault if there are too many.

        Some clients ignore the window, or check it once per message and not once per frame: the connection has a limit
        of such frames, and a ``begun`` delivery may have another window in any case.
        """
        connection: ConnectionPort = self._connection
        if connection.overrun_frames >= connection.overrun_limit and not (
            begun and self.incoming_frames > -self.max_incoming_frames
        ):
            raise PeerFault(Fault.WINDOW_VIOLATION)
        connection.overrun_frames += 1

    def forget_overrun(self) -> None:
        """Count the frames beyond the window as within it: it opens again, or the session is over."""
        if self.incoming_frames < 0:
            self._connection.overrun_frames += self.incoming_frames
            self.incoming_frames = 0

    def advertised_frames(self) -> Py_ssize_t:
        """Return the peer's window for a flow; 0 after it was overrun."""
        return self.incoming_frames if self.incoming_frames > 0 else 0

    def reopen(self) -> bool:
        """Open the peer's window again as far as the held bytes allow; return whether it must be told.

        After the peer has overrun it, only once half of the bytes are free.
        """
        if self.incoming_frames * 2 > self.max_incoming_frames:
            return False
        if self.incoming_frames < 0 and self.held_bytes * 2 > self.max_incoming_bytes:
            return False
        room: Py_ssize_t = self.max_incoming_frames
        if self.held_bytes > 0:
            room = (self.max_incoming_bytes - self.held_bytes) * room // self.max_incoming_bytes
        connection: ConnectionPort = self._connection
        budget: Budget = connection.budget
        scarce: bool = budget.held * 2 > budget.limit or connection.buffered_bytes * 2 > connection.buffer_limit
        if scarce or (self.shares is not None and self._shares_run_out()):
            room = room // 8 if room >= 8 else room
        if room > 0 and room > self.incoming_frames and self.incoming_frames * 2 <= room:
            self.forget_overrun()
            self.incoming_frames = room
            return True
        return False

    # --- frames of ours

    def receive_begin(self, begin: Begin) -> None:
        """Apply the ids and the window of the peer's begin."""
        self.next_incoming_id = begin.next_outgoing_id
        self.outgoing_frames = min(begin.incoming_window, _MAX_WINDOW)

    def receive_flow(self, flow: FlowReader) -> None:
        """Apply the window of the peer's flow."""
        window: Py_ssize_t = flow.incoming_window
        if flow.next_incoming_id >= 0:
            # Frames of ours that the peer had not seen when it wrote this. If its next-incoming-id is impossible (some
            # peers send 0 before they read our begin), it counts as having seen everything.
            unseen: Py_ssize_t = (self.next_outgoing_id - flow.next_incoming_id) & _MASK32
            if unseen < _HALF and unseen <= self.sent_frames:
                window -= unseen
        else:
            window -= self.sent_frames
        self.outgoing_frames = window if window < _MAX_WINDOW else _MAX_WINDOW

    def spend_frame(self) -> None:
        """Count one transfer frame of ours in the peer's window."""
        self.outgoing_frames -= 1
        self.sent_frames += 1
        self.next_outgoing_id = (self.next_outgoing_id + 1) & _MASK32

    # --- bytes

    def hold_bytes(self, count: Py_ssize_t) -> None:
        """Count ``count`` bytes of this session as held, which narrows its window; PeerFault beyond a limit."""
        connection: ConnectionPort = self._connection
        budget: Budget = connection.budget
        if count > budget.limit - budget.held:
            raise PeerFault(Fault.MEMORY)
        if count > connection.buffer_limit - connection.buffered_bytes:
            raise PeerFault(Fault.BUFFERED, limit=connection.buffer_limit)
        budget.held += count
        connection.buffered_bytes += count
        self.held_bytes += count
        if self.shares is not None:
            self._count_in_shares(count)

    def release_bytes(self, count: Py_ssize_t) -> bool:
        """Count ``count`` bytes as no longer held; return whether half of the peer's window is used.

        ``Session.release_bytes`` calls it, and has the window opened again.
        """
        connection: ConnectionPort = self._connection
        self.held_bytes -= count
        connection.budget.held -= count
        connection.buffered_bytes -= count
        if self.shares is not None:
            self._count_in_shares(-count)
        return self.incoming_frames * 2 <= self.max_incoming_frames

    def keep_bytes(self, count: Py_ssize_t) -> None:
        """Count ``count`` bytes more of attaches as kept, fewer if it is negative; PeerFault beyond the limit.

        They neither narrow the window nor count in the budget of messages, which ends the sessions of other peers.
        """
        connection: ConnectionPort = self._connection
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

    def _count_in_shares(self, count: Py_ssize_t) -> None:
        for each in self.shares or ():
            budget: Budget = each
            budget.held += count

    def _shares_run_out(self) -> bool:
        for each in self.shares or ():
            budget: Budget = each
            if budget.held * 2 > budget.limit:
                return True
        return False


class SessionPort:
    """What the owners of links need of a session."""

    __slots__ = ("connection", "channel", "windows", "mapped", "urgency")

    def __init__(self, connection: ConnectionPort, channel: c_int, limits: EngineLimits) -> None:
        self.connection = connection
        self.channel = channel
        self.windows = SessionWindows(connection, limits)
        #: True in state MAPPED while the connection is not silent. Kept for the data path.
        self.mapped = False
        #: Sessions with a higher one resume first once the output has room again.
        self.urgency: c_int = 0

    def settle_incoming(self, delivery: Delivery, code: c_int, state: bytes | None, settled: bool) -> None:
        """Send the sender our state for one of its deliveries."""
        raise Unconnected

    def settle_outgoing(self, delivery: Delivery, code: c_int, state: bytes | None, settled: bool) -> None:
        """Send the receiver our state for a delivery that we sent."""
        raise Unconnected

    def release_bytes(self, count: Py_ssize_t) -> None:
        """Count ``count`` bytes as no longer held."""
        raise Unconnected


class LinkPort:
    """What a delivery and a session need of a link."""

    __slots__ = ("session", "sink")

    def __init__(self, session: SessionPort) -> None:
        self.session = session
        self.sink: LinkSink = _NO_SINK

    def receive_transfer(self, transfer: TransferReader, data: bytes, end: Py_ssize_t) -> None:
        """Apply a transfer frame for this link; PeerFault."""
        raise Unconnected

    def receive_flow(self, flow: FlowReader) -> None:
        """Apply the link state of a flow frame."""
        raise Unconnected

    def write_flow(self) -> bool:
        """Write a flow with the state of link and session; return False, and write none, if the link is gone."""
        raise Unconnected

    def resume_sending(self) -> None:
        """Continue to send after a wait."""
        raise Unconnected


class Delivery:
    """One message on one link, from its first transfer frame until both sides settled it.

    ``state`` is a ``DeliveryState``; only ``advance_incoming`` and ``advance_outgoing`` change it, by the tables of
    ``states``. The flags are derived from it and kept for the data path: ``begun`` and ``complete`` are set once the
    first and the last transfer frame were sent or received, ``complete`` and ``aborted`` also if the last one never
    will be; ``settled`` is our side's, ``remote_settled`` the peer's. ``remote_state`` is the peer's delivery state as
    it came (encoded), ``remote_code`` its descriptor (0 for none).

    These fields are the engine's. What the owner of a link needs of a delivery is in a subclass of the owner: it makes
    the deliveries that it sends, and its sink makes those that come (``LinkSink.make_delivery``).
    """

    __slots__ = (
        "link",
        "delivery_id",
        "message_format",
        "number",
        "tag",
        "state",
        "begun",
        "complete",
        "aborted",
        "settled",
        "remote_settled",
        "remote_code",
        "remote_state",
        "transfer_state",
        "state_code",
        "payload_bytes",
    )

    def __init__(self, link: LinkPort) -> None:
        # Every field but the link begins as zero, False or None: `deliveries.new_delivery` relies on it.
        self.link = link
        self.delivery_id: c_uint = 0
        #: The tag as a number (8 bytes, little-endian) when ``tag`` is None.
        self.number: Py_ssize_t = 0
        self.tag: bytes | None = None
        self.message_format: c_uint = 0
        self.state: c_int = 0
        self.begun = False
        self.complete = False
        self.aborted = False
        self.settled = False
        self.remote_settled = False
        self.remote_code: c_int = 0
        self.remote_state: bytes | None = None
        #: The state carried on the transfer itself (encoded).
        self.transfer_state: bytes | None = None
        self.state_code: c_int = 0
        self.payload_bytes: Py_ssize_t = 0

    def mark_settled(self) -> None:
        """Settle it here without a frame, once: before its first frame, or if the peer does not wait for it."""
        if not self.settled:
            advance_outgoing(self, _SETTLE_HERE)

    def drop_unsent(self) -> None:
        """Give it up before its first frame is sent."""
        advance_outgoing(self, _DROP)


def advance_incoming(delivery: Delivery, step: Py_ssize_t) -> c_int:
    """Change the state of a delivery that the peer sends by ``step``, and return it; IllegalStep."""
    state: Py_ssize_t = _INCOMING[delivery.state * 8 + step]
    if state == 0:
        _refuse(delivery, step)
    return _enter(delivery, state)


def advance_outgoing(delivery: Delivery, step: Py_ssize_t) -> c_int:
    """Change the state of a delivery that we send by ``step``, and return it; IllegalStep."""
    state: Py_ssize_t = _OUTGOING[delivery.state * 8 + step]
    if state == 0:
        _refuse(delivery, step)
    return _enter(delivery, state)


def _enter(delivery: Delivery, state: Py_ssize_t) -> c_int:
    """Change the state of a delivery, and the flags derived from it; return the state."""
    row: Py_ssize_t = state * 5
    delivery.state = state
    delivery.begun = _FLAGS[row]
    delivery.complete = _FLAGS[row + 1]
    delivery.aborted = _FLAGS[row + 2]
    delivery.settled = _FLAGS[row + 3]
    delivery.remote_settled = _FLAGS[row + 4]
    return state


def _refuse(delivery: Delivery, step: Py_ssize_t) -> None:
    before, name = DeliveryState(delivery.state).name, DeliveryStep(step).name
    raise IllegalStep(f"{name.lower().replace('_', ' ')} while {before.lower().replace('_', ' ')}")


class LinkSink:
    """The owner of a link, notified by these calls of what happens on it. The base ignores everything."""

    __slots__ = ()

    def make_delivery(self, link: LinkPort) -> Delivery:
        """Return a new delivery for a message whose first transfer came; the calls below pass it."""
        return Delivery(link)

    def on_transfer(self, link: LinkPort, delivery: Delivery, data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> None:
        """Receive a transfer frame's payload, ``data[start:end]``; the last one if ``delivery.complete``."""

    def on_aborted(self, link: LinkPort, delivery: Delivery) -> None:
        """Note that a delivery was aborted before it was complete."""

    def on_disposition(self, delivery: Delivery) -> None:
        """Note that the peer changed ``remote_state`` or ``remote_settled`` of a delivery."""

    def on_credit(self, link: LinkPort) -> None:
        """Note that the receiver's credit or drain flag changed, or that a blocked link may go on sending."""

    def on_drained(self, link: LinkPort) -> None:
        """Note that the sender used up or gave back the credit that a drain asked for."""

    def on_overdrawn(self, link: LinkPort) -> None:
        """Note that a delivery without credit was accepted; ``link`` has counted it."""

    def on_refused(self, link: LinkPort, delivery: Delivery) -> None:
        """Note that the link rejected a delivery when it began; only ``on_aborted`` follows, at its end."""


class Unconnected(Exception):
    """A method of a port that no object implements was called: a bug."""


_NO_SINK: Final[LinkSink] = LinkSink()

__all__ = [
    "Budget",
    "ConnectionOwner",
    "ConnectionPort",
    "Delivery",
    "Event",
    "LinkHolder",
    "LinkPort",
    "LinkSink",
    "SessionHolder",
    "SessionPort",
    "SessionWindows",
    "Unconnected",
]
