"""What the parts of a conversation know of one another.

A link writes through its session and a session through its connection; this
module holds what the lower parts may ask of the upper ones, the delivery they
all pass around, and the sink through which a link's owner (the router's core,
a client) hears what happened on it. Calls between them are the data path: one
typed call per transfer, disposition and flow, no object per frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trouter.wire.performatives import Performative
    from trouter.wire.transfers import FlowReader, TransferReader


class Event:
    """A rare step of the peer's; ``events`` has them all."""

    __slots__ = ()


class Budget:
    """Octets of messages that all connections of a process hold together, and how many they may.

    Beyond half of ``limit`` the windows of sessions open an eighth as far; beyond all of it, a peer that sends more is
    refused.
    """

    __slots__ = ("held", "limit")

    def __init__(self, limit: int) -> None:
        self.held = 0
        self.limit = limit


class ConnectionPort:
    """What a session asks of its connection: a place to write, and to be flushed at the end of the pass."""

    __slots__ = (
        "budget",
        "buffer_limit",
        "buffered_bytes",
        "high_water",
        "link_count",
        "out",
        "outbox",
        "owner",
        "paused",
        "promised_bytes",
        "remote_max_frame_bytes",
        "silent",
        "touched",
        "wrote",
    )

    def __init__(self, outbox: list[Any], budget: Budget) -> None:
        self.out = bytearray()
        self.budget = budget
        self.outbox = outbox
        #: The object that owns the connection; the engine never looks at it.
        self.owner: Any = None
        self.touched = False
        #: Links stopped because the output stood at its high-water mark; ``resume_output`` lets them go on.
        self.paused = False
        #: Something was written since the last tick.
        self.wrote = False
        #: A close was sent or received: sessions and links have nothing to say any more.
        self.silent = False
        self.link_count = 0
        #: What its sessions hold, what they may hold, and what the windows promise that they began with.
        self.buffered_bytes = 0
        self.buffer_limit = 1 << 62
        self.promised_bytes = 0
        self.remote_max_frame_bytes = 512
        self.high_water = 512 * 1024

    def touch(self) -> None:
        """Ask for a flush once the pass is over."""
        if not self.touched:
            self.touched = True
            self.wrote = True
            self.outbox.append(self)

    def write(self, channel: int, performative: Performative) -> None:
        """Write a frame with ``performative`` and nothing behind it."""
        raise Unconnected

    def report(self, event: Event) -> None:
        """Tell the holder of the connection what happened."""
        raise Unconnected


class SessionPort:
    """What links and their owners ask of a session."""

    __slots__ = ("channel", "connection", "held_bytes", "shares", "urgency")

    def __init__(self, connection: ConnectionPort, channel: int) -> None:
        self.connection = connection
        self.channel = channel
        #: Octets taken in over this session and not yet sent on; they close its incoming window.
        self.held_bytes = 0
        #: Where they are counted besides the connection's budget; None for nowhere. ``count_in`` changes it.
        self.shares: list[Budget] | None = None
        #: The sessions with more of it are the first to go on when the output has room again.
        self.urgency = 0

    def write(self, performative: Performative) -> None:
        """Write a frame on the session's channel, unless the session is over."""
        raise Unconnected

    def settle_incoming(self, delivery: Delivery, code: int, state: bytes | None, settled: bool) -> None:
        """Tell the sender our state for one of its deliveries."""
        raise Unconnected

    def settle_outgoing(self, delivery: Delivery, code: int, state: bytes | None, settled: bool) -> None:
        """Tell the receiver our state for a delivery we sent."""
        raise Unconnected

    def hold(self, count: int) -> None:
        """Keep ``count`` octets of what this session brought."""
        raise Unconnected

    def release(self, count: int) -> None:
        """Let go of ``count`` held octets."""
        raise Unconnected


class LinkPort:
    """What a delivery knows of its link."""

    __slots__ = ("session", "sink")

    def __init__(self, session: SessionPort) -> None:
        self.session = session
        self.sink = NO_SINK

    def receive_transfer(self, transfer: TransferReader, data: bytes, end: int) -> None:
        """Take in a transfer frame for this link; PeerFault."""
        raise Unconnected

    def receive_flow(self, flow: FlowReader) -> None:
        """Take in the link state of a flow frame; PeerFault."""
        raise Unconnected

    def write_flow(self) -> bool:
        """Write a flow frame with the link's state, and so the session's; a link that is gone writes none."""
        raise Unconnected

    def resume(self) -> None:
        """Go on sending after a wait."""
        raise Unconnected


class Delivery:
    """One message on one link, from its first transfer frame until both sides settled it.

    ``settled`` is our side's word, ``remote_settled`` the peer's; ``remote_state``
    holds the peer's delivery state as it came (encoded), ``remote_code`` its
    descriptor (0 for none). The fields below the line belong to the link's owner.
    """

    __slots__ = (
        "aborted",
        "arrived_at",
        "begun",
        "chunk",
        "complete",
        "context",
        "copies",
        "delivery_id",
        "link",
        "message",
        "message_format",
        "number",
        "octets",
        "offset",
        "partner",
        "remote_code",
        "remote_settled",
        "remote_state",
        "settled",
        "state_code",
        "tag",
        "transfer_state",
    )

    def __init__(self, link: LinkPort) -> None:
        # Every field but the link begins as zero, False or None: `deliveries.new_delivery` counts on it.
        self.link = link
        self.delivery_id = 0
        #: The tag as a number (8 octets, little-endian) when ``tag`` is None.
        self.number = 0
        self.tag: bytes | None = None
        self.message_format = 0
        #: The first transfer frame was sent or received.
        self.begun = False
        #: The last transfer frame was sent or received.
        self.complete = False
        self.aborted = False
        self.settled = False
        self.remote_settled = False
        self.remote_code = 0
        self.remote_state: bytes | None = None
        #: The state carried on the transfer itself (encoded).
        self.transfer_state: bytes | None = None
        self.state_code = 0
        self.octets = 0
        # --- the owner's
        self.partner: Delivery | None = None
        self.copies: list[Delivery] | None = None
        self.message: Any = None
        self.context: Any = None
        self.chunk = 0
        self.offset = 0
        self.arrived_at = 0.0


class LinkSink:
    """The owner of a link; what happens on the link is told through these calls. The base ignores everything."""

    __slots__ = ()

    def on_transfer(self, link: LinkPort, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        """Take a transfer frame, its payload in ``data[start:end]``; the last one if ``delivery.complete``."""

    def on_aborted(self, link: LinkPort, delivery: Delivery) -> None:
        """Note that the sender took a delivery back before it was complete."""

    def on_disposition(self, delivery: Delivery) -> None:
        """Note that the peer changed ``remote_state`` or ``remote_settled`` of a delivery."""

    def on_credit(self, link: LinkPort) -> None:
        """Note that the receiver's credit or drain flag changed, or that a blocked link may go on sending."""

    def on_drained(self, link: LinkPort) -> None:
        """Note that the sender used up or gave back the credit that we asked it to drain."""

    def on_overdrawn(self, link: LinkPort) -> None:
        """Note a delivery without credit that is taken in all the same; ``link`` has counted it."""

    def on_refused(self, link: LinkPort, delivery: Delivery) -> None:
        """Note that the link has rejected a delivery at its beginning; nothing else is said of it."""


class Unconnected(Exception):
    """A port was used that nothing stands behind: a bug."""


NO_SINK = LinkSink()

__all__ = ["Budget", "ConnectionPort", "Delivery", "Event", "LinkPort", "LinkSink", "SessionPort", "Unconnected"]
