"""What the parts of a connection call on one another.

A link writes through its session and a session through its connection. This module holds what the lower parts call on
the upper ones, the delivery that all pass around, and the sink that notifies a link's owner (the router's core, a
client). These calls are the data path: one typed call per transfer, disposition and flow, no object per frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    from trouter.wire.performatives import Performative
    from trouter.wire.transfers import FlowReader, TransferReader


#: The tables of deliveries for the data path: after a state and a step (three bits), the following state, 0 for an
#: illegal step (none leads back to the first state); and five flags for each state.
_INCOMING = flat(INCOMING_NEXT, DeliveryState, 8)
_OUTGOING = flat(OUTGOING_NEXT, DeliveryState, 8)
_FLAGS = [state in flag for state in DeliveryState for flag in (BEGUN, COMPLETE, ABORTED, SETTLED_HERE, SETTLED_THERE)]
_SETTLE_HERE = int(DeliveryStep.SETTLE_HERE)
_DROP = int(DeliveryStep.DROP)


class Event:
    """A rare step of the peer; ``events`` has them all."""

    __slots__ = ()


class Budget:
    """Bytes of messages that all connections of a process hold together, and their limit.

    Beyond half of ``limit`` the windows of sessions open an eighth as far; beyond all of it, a peer that sends more is
    refused.
    """

    __slots__ = ("held", "limit")

    def __init__(self, limit: int) -> None:
        self.held = 0
        self.limit = limit


class ConnectionPort:
    """What a session needs of its connection: the output, and a flush at the end of the pass."""

    __slots__ = (
        "budget",
        "buffer_limit",
        "buffered_bytes",
        "high_water",
        "kept_bytes",
        "link_count",
        "out",
        "outbox",
        "owner",
        "paused",
        "promised_bytes",
        "refused_count",
        "remote_max_frame_bytes",
        "silent",
        "touched",
        "wrote",
    )

    def __init__(self, outbox: list[Any], budget: Budget) -> None:
        self.out = bytearray()
        self.budget = budget
        self.outbox = outbox
        #: The owner of the connection; the engine does not use it.
        self.owner: Any = None
        self.touched = False
        #: Links wait because the output is at its high-water mark; ``resume_output`` resumes them.
        self.paused = False
        #: Something was written since the last tick.
        self.wrote = False
        #: A close was sent or received, or the holder is done with the connection: sessions and links write nothing
        #: more. Kept for the data path.
        self.silent = False
        self.link_count = 0
        #: Links that were refused and that the peer has not detached yet.
        self.refused_count = 0
        #: Bytes that are kept of the peer's open and attaches beyond those of ordinary ones.
        self.kept_bytes = 0
        #: Bytes that its sessions hold, with ``kept_bytes``; their limit; and those that the first windows allow.
        self.buffered_bytes = 0
        self.buffer_limit = 1 << 62
        self.promised_bytes = 0
        self.remote_max_frame_bytes = 512
        self.high_water = 512 * 1024

    def touch(self) -> None:
        """Request a flush at the end of the pass."""
        if not self.touched:
            self.touched = True
            self.wrote = True
            self.outbox.append(self)

    def write(self, channel: int, performative: Performative) -> None:
        """Write a frame with ``performative`` and no payload."""
        raise Unconnected

    def report(self, event: Event) -> None:
        """Report ``event`` to the holder of the connection."""
        raise Unconnected


class SessionPort:
    """What links and their owners need of a session."""

    __slots__ = (
        "channel",
        "connection",
        "held_bytes",
        "kept_bytes",
        "mapped",
        "remote_incoming_window",
        "shares",
        "urgency",
        "window_bytes",
    )

    def __init__(self, connection: ConnectionPort, channel: int) -> None:
        self.connection = connection
        self.channel = channel
        #: True in state MAPPED while the connection is not silent. Kept for the data path.
        self.mapped = False
        #: Transfer frames that we may still send, and the bytes that the peer may send at once.
        self.remote_incoming_window = 0
        self.window_bytes = 0
        #: Bytes received over this session and not yet sent on; they close its incoming window.
        self.held_bytes = 0
        #: Bytes kept of the attaches of its links.
        self.kept_bytes = 0
        #: Budgets that count both besides the connection's; None for none. Set by ``count_in``.
        self.shares: list[Budget] | None = None
        #: Sessions with a higher one resume first once the output has room again.
        self.urgency = 0

    def write(self, performative: Performative) -> None:
        """Write a frame on the session's channel, unless the session is over."""
        raise Unconnected

    def settle_incoming(self, delivery: Delivery, code: int, state: bytes | None, settled: bool) -> None:
        """Send the sender our state for one of its deliveries."""
        raise Unconnected

    def settle_outgoing(self, delivery: Delivery, code: int, state: bytes | None, settled: bool) -> None:
        """Send the receiver our state for a delivery that we sent."""
        raise Unconnected

    def hold_bytes(self, count: int) -> None:
        """Count ``count`` bytes of this session as held; PeerFault beyond a limit."""
        raise Unconnected

    def release_bytes(self, count: int) -> None:
        """Count ``count`` bytes as no longer held."""
        raise Unconnected

    def keep_bytes(self, count: int) -> None:
        """Count ``count`` bytes more of attaches as kept, fewer if it is negative; PeerFault beyond a limit."""
        raise Unconnected

    # --- deliveries

    def check_delivery_id(self, delivery_id: int) -> None:
        """Check that a first transfer's delivery-id follows the last one; PeerFault."""
        raise Unconnected

    def add_incoming(self, delivery: Delivery) -> None:
        """Keep a delivery of the peer until one side has settled it."""
        raise Unconnected

    def add_outgoing(self, delivery: Delivery) -> None:
        """Give a delivery of ours the next id, and keep it until one side has settled it."""
        raise Unconnected

    def forget_incoming(self, delivery: Delivery) -> None:
        """Forget a delivery of the peer without a disposition (it was aborted, or its link is gone)."""
        raise Unconnected

    def forget_outgoing(self, delivery: Delivery) -> None:
        """Forget a delivery of ours without a disposition (it was aborted, or its link is gone)."""
        raise Unconnected

    def deliveries_of(self, link: LinkPort, incoming: bool) -> list[Delivery]:
        """Return the link's unsettled deliveries in one direction, oldest first."""
        raise Unconnected

    # --- frames of links

    def spend_frame(self) -> None:
        """Count one transfer frame of ours in the peer's window."""
        raise Unconnected

    def wait_for_room(self, link: LinkPort) -> None:
        """Resume ``link`` once the peer's window and the output have room."""
        raise Unconnected

    def request_flow(self, link: LinkPort) -> None:
        """Call ``write_flow`` of ``link`` with the next flush."""
        raise Unconnected

    def request_flush(self) -> None:
        """Request a flush of this session at the end of the pass."""
        raise Unconnected

    def write_link_flow(self, handle: int, delivery_count: int, credit: int, drain: bool) -> None:
        """Write a flow with the state of the session and of one link."""
        raise Unconnected

    # --- handles and names of links

    def release_remote_handle(self, handle: int) -> None:
        """Free this handle of the peer for another link."""
        raise Unconnected

    def release_name(self, link: LinkPort, named: tuple[bool, str]) -> None:
        """Free the name of a link that the peer has detached."""
        raise Unconnected

    def release_handle(self, handle: int) -> None:
        """Free this handle of ours for another link."""
        raise Unconnected

    def forget_link(self, handle: int) -> None:
        """Forget a link that both sides have detached."""
        raise Unconnected

    def replace_by_refused(self, handle: int, remote_handle: int, named: tuple[bool, str]) -> None:
        """Keep of a refused link only its two handles, until the peer detaches it; its name is free at once."""
        raise Unconnected

    def count_refused(self, count: int) -> None:
        """Count ``count`` more links that were refused and that the peer has not detached."""
        raise Unconnected


class LinkPort:
    """What a delivery and a session need of a link."""

    __slots__ = ("session", "sink")

    def __init__(self, session: SessionPort) -> None:
        self.session = session
        self.sink = NO_SINK

    def receive_transfer(self, transfer: TransferReader, data: bytes, end: int) -> None:
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
        "aborted",
        "begun",
        "complete",
        "delivery_id",
        "link",
        "message_format",
        "number",
        "payload_bytes",
        "remote_code",
        "remote_settled",
        "remote_state",
        "settled",
        "state",
        "state_code",
        "tag",
        "transfer_state",
    )

    def __init__(self, link: LinkPort) -> None:
        # Every field but the link begins as zero, False or None: `deliveries.new_delivery` relies on it.
        self.link = link
        self.delivery_id = 0
        #: The tag as a number (8 bytes, little-endian) when ``tag`` is None.
        self.number = 0
        self.tag: bytes | None = None
        self.message_format = 0
        self.state = 0
        self.begun = False
        self.complete = False
        self.aborted = False
        self.settled = False
        self.remote_settled = False
        self.remote_code = 0
        self.remote_state: bytes | None = None
        #: The state carried on the transfer itself (encoded).
        self.transfer_state: bytes | None = None
        self.state_code = 0
        self.payload_bytes = 0

    def mark_settled(self) -> None:
        """Settle it here without a frame, once: before its first frame, or if the peer does not wait for it."""
        if not self.settled:
            advance_outgoing(self, _SETTLE_HERE)

    def drop_unsent(self) -> None:
        """Give it up before its first frame is sent."""
        advance_outgoing(self, _DROP)


def advance_incoming(delivery: Delivery, step: int) -> int:
    """Change the state of a delivery that the peer sends by ``step``, and return it; IllegalStep."""
    state = _INCOMING[delivery.state * 8 + step]
    if state == 0:
        _refuse(delivery, step)
    return _enter(delivery, state)


def advance_outgoing(delivery: Delivery, step: int) -> int:
    """Change the state of a delivery that we send by ``step``, and return it; IllegalStep."""
    state = _OUTGOING[delivery.state * 8 + step]
    if state == 0:
        _refuse(delivery, step)
    return _enter(delivery, state)


def _enter(delivery: Delivery, state: int) -> int:
    """Change the state of a delivery, and the flags derived from it; return the state."""
    row = state * 5
    delivery.state = state
    delivery.begun = _FLAGS[row]
    delivery.complete = _FLAGS[row + 1]
    delivery.aborted = _FLAGS[row + 2]
    delivery.settled = _FLAGS[row + 3]
    delivery.remote_settled = _FLAGS[row + 4]
    return state


def _refuse(delivery: Delivery, step: int) -> None:
    before, name = DeliveryState(delivery.state).name, DeliveryStep(step).name
    raise IllegalStep(f"{name.lower().replace('_', ' ')} while {before.lower().replace('_', ' ')}")


class LinkSink:
    """The owner of a link, notified by these calls of what happens on it. The base ignores everything."""

    __slots__ = ()

    def make_delivery(self, link: LinkPort) -> Delivery:
        """Return a new delivery for a message whose first transfer came; the calls below pass it."""
        return Delivery(link)

    def on_transfer(self, link: LinkPort, delivery: Delivery, data: bytes, start: int, end: int) -> None:
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


NO_SINK = LinkSink()

__all__ = ["Budget", "ConnectionPort", "Delivery", "Event", "LinkPort", "LinkSink", "SessionPort", "Unconnected"]
