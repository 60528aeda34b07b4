"""What the endpoints of a delivery need of each other and of the router's parts.

``notify_sender`` passes what a receiver says back to the endpoint where the delivery entered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from trouter.engine.link import IncomingLink
from trouter.engine.link_base import Link
from trouter.engine.ports import LinkSink
from trouter.wire.sections import MessageScan

from .counters import AddressCounters, Counters, Outcomes
from .listeners import EventListeners
from .message import Arrival, IncomingDelivery, Message, OutgoingDelivery
from .outcomes import ACCEPTED, BARE
from .times import Times, TimesByAddress
from .tracing import Tracing

if TYPE_CHECKING:
    from .tenants import Tenant

_FIRST_OUTCOME = 0x24
#: The largest message for a consumer inside the router, in bytes; below a session's window.
MAX_INSIDE_BYTES: Final = 1024 * 1024


class Grantee(Protocol):
    """What a gate needs of an incoming link; see ``CreditAccount``."""

    @property
    def link(self) -> IncomingLink:
        """Return the link."""

    @property
    def counters(self) -> Counters:
        """Return the counters of its deliveries."""

    def top_up_credit(self) -> None:
        """Grant the credit owed, because more is available."""


class Gate(Protocol):
    """Limits the credit of senders."""

    def take_credit(self, link: Grantee, count: int) -> int:
        """Return how much of ``count`` to grant the sender on ``link``, which may ask again by ``top_up_credit``."""


class MessageTap(Protocol):
    """The receiver of events about incoming messages; see ``MessageLog``."""

    def note_received(self, link: Link, message: bytes) -> None:
        """Note that a message came, or the beginning of one in several frames."""

    def note_aborted(self, link: Link) -> None:
        """Note that the sender aborted a message."""


class AddressPort(Protocol):
    """What a link needs of its address; see ``AddressEntry``."""

    times: Times | None

    @property
    def key(self) -> str:
        """Return the lookup key."""

    @property
    def text(self) -> str:
        """Return the address as clients write it."""

    @property
    def counters(self) -> AddressCounters:
        """Return the counters of its messages."""


class OutgoingPort(Protocol):
    """What leaves the router on a link; see ``OutgoingEndpoint``."""

    @property
    def entry(self) -> AddressPort | None:
        """Return the address that it serves."""

    @property
    def connection_number(self) -> int:
        """Return the connection's number in management."""


class TrunkPort(Protocol):
    """What the links on a trunk need of it; see ``Trunk``."""

    @property
    def number(self) -> int:
        """Return the connection's number in management."""

    @property
    def name(self) -> str:
        """Return the neighbour's name in annotations."""

    def is_control(self, endpoint: LinkSink) -> bool:
        """Return whether a link of the trunk is one of its control links."""

    def priority_of(self, endpoint: LinkSink) -> int:
        """Return the priority of a data link, -1 for one that has none."""

    def remove_link(self, endpoint: LinkSink) -> None:
        """Remove a link that has ended."""


class NetworkPort(Protocol):
    """What the links of this router need of the network; see ``Network``."""

    @property
    def generation(self) -> int:
        """Return the number of shapes of the network so far."""


class Creditor(Protocol):
    """An incoming link whose sender is owed a little credit."""

    def return_owed(self) -> bool:
        """Grant the credit owed if no delivery came since it was noted; return False if one did."""


class SharedState:
    """The state that all endpoints share: time, the counter of delivery tags, the counts of deliveries."""

    __slots__ = (
        "stopping",
        "latency",
        "network",
        "next_tag",
        "owed_listeners",
        "now_s",
        "outcomes",
        "overdrawing",
        "overdrawn",
        "owed_accounts",
        "times",
        "tracing",
        "anonymous_scan",
        "scan",
        "uplink",
    )

    def __init__(self) -> None:
        #: None before there is a router.
        self.network: NetworkPort | None = None
        #: On an edge router, the link for everything that is elsewhere; None without an uplink.
        self.uplink: OutgoingPort | None = None
        #: The router is about to stop: no sender gets more credit.
        self.stopping = False
        #: Read the message under way of a link with an address, and of one whose messages name theirs.
        self.scan = MessageScan()
        self.anonymous_scan = MessageScan(reads_to=True)
        self.now_s = 0.0
        self.next_tag = 0
        #: Ingresses whose senders are owed a little credit, and what is called for the first of them.
        self.owed_accounts: dict[Creditor, None] = {}
        self.owed_listeners: EventListeners[[]] = EventListeners()
        #: Deliveries that were accepted without credit, and the links that began it since the last scan.
        self.overdrawn = 0
        self.overdrawing: list[IncomingLink] = []
        #: Latencies by address, while records include them.
        self.times: TimesByAddress | None = None
        #: The spans of messages; None unless a plugin wants them.
        self.tracing: Tracing | None = None
        self.outcomes = Outcomes()
        #: The part of ``outcomes`` that the data path writes to.
        self.latency = self.outcomes.latency

    def note_owed(self, incoming: Creditor) -> None:
        """Note that a sender is owed credit, to be granted if no delivery comes for a moment."""
        self.owed_accounts[incoming] = None
        if len(self.owed_accounts) == 1:
            self.owed_listeners.notify()

    @property
    def totals(self) -> Counters:
        """Sums over the deliveries of all incoming links since the start."""
        return self.outcomes.totals()


class DeliverySource(LinkSink):
    """The place where deliveries enter: an incoming link, or a sender inside the router."""

    __slots__ = ("arrival", "by_name", "connection_number", "counters", "shared", "tenant", "trunk", "via_edge")

    def __init__(self, shared: SharedState) -> None:
        self.shared = shared
        self.counters = Counters()
        #: The connection's number in management; 0 for the router itself, or while it is unknown.
        self.connection_number = 0
        #: The tenant of the messages, or None.
        self.tenant: Tenant | None = None
        #: The connection to a neighbouring router that it is on; None on other connections.
        self.trunk: TrunkPort | None = None
        #: The connection is between an edge router and its interior router; messages do not go back over it.
        self.via_edge = False
        #: Each message names its address, because the link has none.
        self.by_name = True
        #: The message under way.
        self.arrival = Arrival()

    def write_whole(self, data: bytes, start: int, end: int, strips_annotations: bool) -> bytes:
        """Return the message under way, ``data[start:end]``, with or without routers' annotations."""
        raise LookupError

    def build_message(self, delivery: IncomingDelivery, data: bytes, start: int, end: int) -> Message:
        """Return the message in ``data[start:end]`` as a kept one."""
        raise LookupError

    def write_head(self, message: Message, head: bytes, strips_annotations: bool) -> bytes:
        """Return ``head`` with the router's annotations, or without any router's."""
        raise LookupError

    def write_onward(self, message: Message, to: str, phase: int) -> bytes:
        """Return the first piece of ``message`` for the address ``to``, as if it had entered the network here."""
        raise LookupError

    def accept_delivery(self, delivery: IncomingDelivery) -> None:
        """Accept an unsettled delivery for all its receivers; settle it once it is complete."""
        raise LookupError

    def answer_delivery(self, delivery: IncomingDelivery, code: int, state: bytes | None, settled: bool) -> None:
        """Send the sender the state of its delivery; ``code`` 0 without a state only settles."""
        raise LookupError


def notify_sender(
    out: OutgoingDelivery, sender_delivery: IncomingDelivery, code: int, state: bytes | None, settled: bool
) -> None:
    """Relay the state of the copy ``out`` to the sender of ``sender_delivery``.

    At once for a delivery with one copy; a multicast's sender gets the highest outcome when every copy has one, and the
    settlement when every copy is settled.
    """
    source: DeliverySource = sender_delivery.link.sink  # type: ignore[assignment]
    fanout = sender_delivery.fanout
    if fanout is None:
        if settled:
            sender_delivery.single_copy = None
        source.answer_delivery(sender_delivery, code, state, settled)
        return
    counted = not out.counted and (settled or code >= _FIRST_OUTCOME)
    if counted:
        out.counted = True
        fanout.add_outcome(code or ACCEPTED)
    if settled:
        fanout.copies_open -= 1
        if out in fanout.copies:
            fanout.copies.remove(out)
    if fanout.outcomes_open == 0 and (counted or fanout.copies_open == 0):
        source.answer_delivery(sender_delivery, fanout.code, BARE[fanout.code], fanout.copies_open == 0)
