"""What the endpoints of a delivery need of each other and of the router's parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from trouter.engine.link import IncomingLink
from trouter.engine.ports import LinkSink
from trouter.wire.sections import MessageScan

from .counters import AddressCounters, Counters, Outcomes
from .listeners import EventListeners
from .times import Times, TimesByAddress

if TYPE_CHECKING:
    from cython import Py_ssize_t

    from .counters import Latency
    from .tracing import Tracing

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
    """What leaves the router on a link; see ``Egress``."""

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
    """The state that all endpoints share: time, and the counts of deliveries."""

    __slots__ = (
        "stopping",
        "leaving",
        "network",
        "uplink",
        "times",
        "tracing",
        "scan",
        "anonymous_scan",
        "now_s",
        "overdrawn",
        "overdrawing",
        "owed_accounts",
        "owed_listeners",
        "outcomes",
        "latency",
    )

    def __init__(self) -> None:
        #: None before there is a router.
        self.network: NetworkPort | None = None
        #: On an edge router, the link for everything that is elsewhere; None without an uplink.
        self.uplink: OutgoingPort | None = None
        #: The router is about to stop: no sender gets more credit.
        self.stopping = False
        #: The router drains or is about to stop: it withdraws nothing that it told edge routers about addresses.
        self.leaving = False
        #: Read the message under way of a link with an address, and of one whose messages name theirs.
        self.scan = MessageScan()
        self.anonymous_scan = MessageScan(reads_to=True)
        self.now_s = 0.0
        #: Ingresses whose senders are owed a little credit, and what is called for the first of them.
        self.owed_accounts: dict[Creditor, None] = {}
        self.owed_listeners: EventListeners[[]] = EventListeners()
        #: Deliveries that were accepted without credit, and the links that began it since the last scan.
        self.overdrawn: Py_ssize_t = 0
        self.overdrawing: list[IncomingLink] = []
        #: Latencies by address, while records include them.
        self.times: TimesByAddress | None = None
        #: The spans of messages; None unless a plugin wants them.
        self.tracing: Tracing | None = None
        self.outcomes = Outcomes()
        #: The part of ``outcomes`` that the data path writes to.
        self.latency: Latency = self.outcomes.latency

    def note_owed(self, incoming: Creditor) -> None:
        """Note that a sender is owed credit, to be granted if no delivery comes for a moment."""
        self.owed_accounts[incoming] = None
        if len(self.owed_accounts) == 1:
            self.owed_listeners.notify()

    @property
    def totals(self) -> Counters:
        """Sums over the deliveries of all incoming links since the start."""
        return self.outcomes.totals()
