"""What the two ends of a delivery's way through the router know of each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from trouter.engine.link import IncomingLink
from trouter.engine.ports import Delivery, LinkSink

from .arrival import Arrival
from .counters import AddressCounters, Counters
from .latency import Outcomes
from .message import Message
from .tenants import Tenant
from .times import Times, TimesByAddress

#: The largest message for a consumer inside the router, in octets; below a session's window.
MAX_INSIDE_BYTES: Final = 1024 * 1024


class Grantee(Protocol):
    """An incoming link as one who grants credit sees it; see ``Credit``."""

    @property
    def link(self) -> IncomingLink:
        """Return the link itself."""

    @property
    def counters(self) -> Counters:
        """Return what became of its deliveries."""

    def top_up(self) -> None:
        """Grant what is owed, now that more of it may be had."""


class Gate(Protocol):
    """Decides how much credit a sender may have."""

    def take(self, link: Grantee, count: int) -> int:
        """Return how much of ``count`` the sender on ``link`` is granted; ``link.top_up`` asks for the rest."""


class AddressPort(Protocol):
    """What a link may ask of the address that its messages are for; see ``AddressEntry``."""

    times: Times | None

    @property
    def key(self) -> str:
        """Return the lookup key."""

    @property
    def text(self) -> str:
        """Return the address as clients write it."""

    @property
    def counters(self) -> AddressCounters:
        """Return what is counted of its messages."""


class OutEndpoint(Protocol):
    """Where deliveries leave; see ``Egress``."""

    @property
    def entry(self) -> AddressPort | None:
        """Return the address that it serves."""

    @property
    def connection_number(self) -> int:
        """Return what management calls the connection that it is on."""


class TrunkPort(Protocol):
    """The connection to a neighbouring router, as the links on it see it; see ``Trunk``."""

    @property
    def number(self) -> int:
        """Return what management calls it."""

    @property
    def name(self) -> str:
        """Return how annotations name the neighbour."""

    def is_control(self, endpoint: LinkSink) -> bool:
        """Return whether a link of the trunk's carries what routers tell each other."""

    def priority_of(self, endpoint: LinkSink) -> int:
        """Return the priority of a data link, -1 for one that has none."""

    def remove(self, endpoint: LinkSink) -> None:
        """Remove a link that is gone."""


class NetworkPort(Protocol):
    """The other routers, as the links of this one see them; see ``Network``."""

    @property
    def generation(self) -> int:
        """Return how many shapes the network has had."""


class Creditor(Protocol):
    """An incoming link whose sender is owed a little credit."""

    def return_owed(self) -> bool:
        """Grant what is owed if nothing has come since that was noted; False if something has."""


class Pulse:
    """What all endpoints share: the time as net last told it, the counter for delivery tags, how deliveries ended."""

    __slots__ = (
        "draining",
        "latency",
        "network",
        "next_tag",
        "now_s",
        "on_owing",
        "outcomes",
        "overdrawing",
        "overdrawn",
        "owing",
        "times",
        "uplink",
    )

    def __init__(self) -> None:
        #: None before there is a router.
        self.network: NetworkPort | None = None
        #: Of an edge router with a way to the others: the link that takes what is for them; else None.
        self.uplink: OutEndpoint | None = None
        #: The router is about to stop: no sender gets credit any more.
        self.draining = False
        self.now_s = 0.0
        self.next_tag = 0
        #: Ingresses whose senders are owed a little credit, and what is called when there is a first.
        self.owing: dict[Creditor, None] = {}
        self.on_owing: Callable[[], None] = _ignore
        #: Deliveries that came without credit and were taken in, and the links that have begun it since the last scan.
        self.overdrawn = 0
        self.overdrawing: list[IncomingLink] = []
        #: While records tell of these.
        self.times: TimesByAddress | None = None
        self.outcomes = Outcomes()
        #: The part of ``outcomes`` that the data path writes to.
        self.latency = self.outcomes.latency

    def note_owing(self, ingress: Creditor) -> None:
        """Note that a sender is owed credit, which is to be granted if nothing comes for a moment."""
        self.owing[ingress] = None
        if len(self.owing) == 1:
            self.on_owing()

    @property
    def totals(self) -> Counters:
        """Deliveries of all incoming links since the start, as they stand now."""
        return self.outcomes.totals()


class InEndpoint(LinkSink):
    """Where deliveries enter: an incoming link, or something inside the router that sends."""

    __slots__ = ("arrival", "by_name", "connection_number", "counters", "pulse", "tenant", "trunk", "via_edge")

    def __init__(self, pulse: Pulse) -> None:
        self.pulse = pulse
        self.counters = Counters()
        #: What management calls the connection that it is on; 0 for the router itself, or as long as none is known.
        self.connection_number = 0
        #: The tenant whose messages these are, or None.
        self.tenant: Tenant | None = None
        #: The connection to another router that it is on; None on other connections.
        self.trunk: TrunkPort | None = None
        #: The connection is one between an edge router and the router that it hangs on; what came over it does not go
        #: back there.
        self.via_edge = False
        #: Each message names its address, on a link that has none.
        self.by_name = True
        #: The message under way.
        self.arrival = Arrival()

    def write(self, data: bytes, start: int, end: int, plain: bool) -> bytes:
        """Return the message under way, ``data[start:end]``, with routers' annotations or (``plain``) without."""
        raise LookupError

    def build_message(self, delivery: Delivery, data: bytes, start: int, end: int) -> Message:
        """Return the message in ``data[start:end]``, kept, with its heads ready."""
        raise LookupError

    def write_head(self, message: Message, head: bytes, plain: bool) -> bytes:
        """Return ``head`` with the router's annotations, or (``plain``) without those of any router."""
        raise LookupError

    def write_onward(self, message: Message, to: str, phase: int) -> bytes:
        """Return the first piece of ``message`` as it goes on to another address, ``to``, and starts its way here."""
        raise LookupError

    def accept(self, delivery: Delivery) -> None:
        """Answer an unsettled delivery for all who got a copy: accepted, and settled once all of it is here."""
        raise LookupError

    def answer(self, delivery: Delivery, code: int, state: bytes | None, settled: bool) -> None:
        """Tell the sender what became of its delivery; ``code`` 0 with no state is a settlement alone."""
        raise LookupError


def _ignore() -> None:
    """Without a clock, credit that is owed is granted by the next ``return_owed``."""
