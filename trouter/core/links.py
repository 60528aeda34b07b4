"""The one place where routing endpoints of links are made: each is complete, and its link's owner, when it is returned.

A link that a peer attached comes from here, and so does one that the router attached: a client's, an auto link, a
link of a link route, one to a neighbour, to an edge router or over the uplink, and one whose receiver is the router.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.engine.link_base import Link
from trouter.engine.ports import LinkSink

from .arrival import Arrival
from .by_address import ByAddress
from .check import MessageCheck
from .counters import AddressCounters
from .egress import Egress, Streaming, Supplier
from .entry import AddressEntry
from .incoming_parts import CreditAccount
from .ingress import Destination, Ingress
from .messagelog import SentLog
from .network import Network, Trunk
from .ports import SharedState
from .readers import MAX_NOTE_BYTES, Read, ToReader
from .relay import FromOtherEnd, MirroredCredit, ToOtherEnd
from .table import AddressTable
from .terms import CONTAINER_OVERDRAFT, DEFAULT_CAPACITY, ROUTE_CONTAINER, PeerTerms

#: The routing endpoints that links have.
Endpoint = Ingress | Egress


class LinkHome(Protocol):
    """What a link needs of its router; see ``Router``."""

    @property
    def table(self) -> AddressTable:
        """Return the router's addresses."""

    @property
    def shared(self) -> SharedState:
        """Return the state that all links share."""

    @property
    def arrival(self) -> Arrival:
        """Return the hand in which its links take their messages, one after the other."""

    @property
    def totals(self) -> AddressCounters:
        """Return the counters of all addresses together."""

    @property
    def network(self) -> Network:
        """Return the other routers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOptions:
    """What distinguishes a link from the others of its connection, beside the ``terms`` that all of them have."""

    terms: PeerTerms
    #: The address of the link; None for an anonymous one, whose messages name theirs.
    entry: AddressEntry | None = None
    #: The address that messages of an incoming link have for other routers, unless they name another.
    to_override: str | None = None
    #: Messages of an incoming link go to no fallback.
    is_fallback: bool = False
    #: The receiver of an outgoing link asked for settled deliveries only.
    sends_settled: bool = False
    #: The connection to a neighbouring router, for a link that is the network's own.
    trunk: Trunk | None = None
    #: Unfinished messages of an incoming link are routed as soon as possible.
    routes_at_once: bool = False
    #: Unfinished messages go over a link of the connection's pool instead, if it has one.
    borrows_streams: bool = True


def make_incoming(home: LinkHome, link: IncomingLink, options: LinkOptions) -> Ingress:
    """Return the ingress of a link whose messages are routed by address; its ``account`` grants the first credit."""
    terms = options.terms
    by_address = ByAddress(
        home.table,
        home.totals,
        options.entry,
        strips=terms.strip_in,
        to_override=options.to_override,
        is_fallback=options.is_fallback,
        tenant=terms.tenant,
    )
    by_address.rewriter.only_traces = terms.only_traces
    account = CreditAccount(link, home.shared, options.entry, _capacity(terms))
    ingress = _make_ingress(home, account, by_address, options)
    _apply_terms(ingress, terms)
    if terms.via_edge:
        ingress.via_edge = account.between_routers = by_address.rewriter.via_edge = True
    ingress.frames.routes_at_once = options.routes_at_once
    return ingress


def make_outgoing(home: LinkHome, link: OutgoingLink, options: LinkOptions, supplier: Supplier | None = None) -> Egress:
    """Return the endpoint of a link on which the router sends; it is not a consumer of its address yet."""
    terms = options.terms
    outgoing = Egress(link, home.shared, _capacity(terms), terms.strip_out, options.sends_settled, supplier)
    _complete_outgoing(home, outgoing, options)
    pool = home.network.stream_pools.get(terms.connection_number) if options.borrows_streams else None
    if pool is not None:
        outgoing.streaming = Streaming(lender=pool)
    return outgoing


def make_receiver(
    home: LinkHome, link: IncomingLink, options: LinkOptions, read: Read, max_bytes: int = MAX_NOTE_BYTES
) -> Ingress:
    """Return the ingress of a link whose messages the router itself reads; its ``account`` grants the credit."""
    account = CreditAccount(link, home.shared, None, _capacity(options.terms))
    account.goes_on = True
    ingress = _make_ingress(home, account, ToReader(read, max_bytes), options)
    ingress.connection_number = options.terms.connection_number
    ingress.frames.max_read_bytes = max_bytes
    return ingress


def make_routed_incoming(home: LinkHome, link: IncomingLink, options: LinkOptions) -> Ingress:
    """Return the incoming end of a link route's link, whose account is a ``MirroredCredit``."""
    terms, entry = options.terms, options.entry
    assert entry is not None  # noqa: S101 - that of the route's pattern
    account = MirroredCredit(link, home.shared, entry)
    ingress = _make_ingress(home, account, ToOtherEnd(account, entry, home.totals), options)
    _apply_terms(ingress, terms)
    if terms.via_edge:
        ingress.via_edge = account.between_routers = True
    ingress.settlement.of_router = terms.trunk is not None and terms.trunk.remote_container in home.network.siblings
    link.keeps_tags = True
    return ingress


def _make_ingress(home: LinkHome, account: CreditAccount, destination: Destination, options: LinkOptions) -> Ingress:
    """Return the ingress of the link of ``account``, as the owner of the link."""
    link = account.link
    ingress = Ingress(link, home.shared, home.arrival, account, destination, options.terms.tenant)
    if options.trunk is not None:
        ingress.come_from(options.trunk)
    link.keeps_tags = False
    link.sink = ingress
    return ingress


def make_routed_outgoing(home: LinkHome, link: OutgoingLink, options: LinkOptions) -> Egress:
    """Return the outgoing end of a link route's link, whose supplier is a ``FromOtherEnd``."""
    supplier = FromOtherEnd(options.terms.is_router)
    outgoing = Egress(link, home.shared, 0, True, options.sends_settled, supplier)
    _complete_outgoing(home, outgoing, options)
    return outgoing


def attach_link(link: Link, source: object, target: object, **fields: object) -> None:
    """Send our attach, as the first or as the answer: messages have any size, and the modes are mixed and first."""
    link.attach(source, target, max_message_size=_ANY_SIZE, **fields)


def update_terms(ingress: Ingress, terms: PeerTerms, max_message_bytes: int) -> None:
    """Apply the changed terms of its connection to a link, and grant what they no longer keep back."""
    if not ingress.account.goes_on:
        check_messages(ingress, terms.check)
        ingress.tap = terms.tap or terms.log
    ingress.link.max_message_bytes = max_message_bytes
    update_gate(ingress, terms)


def update_gate(ingress: Ingress, terms: PeerTerms) -> None:
    """Let the gate of the terms limit the sender's credit from now on, and grant what it allows."""
    ingress.account.gate = terms.gate
    ingress.account.top_up_credit()


def check_messages(ingress: Ingress, check: MessageCheck | None) -> None:
    """Apply ``check`` to the messages of a link, if it checks such messages."""
    is_checked = check is not None and (ingress.entry is None or check.reads_messages)
    ingress.check = check if is_checked else None


def identity_of(sink: LinkSink) -> int:
    """Return the number in management of the link that ``sink`` owns; 0 for a link that is not routed."""
    return sink.identity if isinstance(sink, Endpoint) else 0


def _capacity(terms: PeerTerms) -> int:
    return terms.link_capacity or DEFAULT_CAPACITY


def _apply_terms(incoming: Ingress, terms: PeerTerms) -> None:
    """Apply the terms of its connection to an incoming link."""
    incoming.tap = terms.tap or terms.log
    incoming.connection_number = terms.connection_number
    check_messages(incoming, terms.check)
    incoming.account.gate = terms.gate
    incoming.account.of_container = terms.role == ROUTE_CONTAINER
    if incoming.account.of_container:
        incoming.link.overdraft = CONTAINER_OVERDRAFT
        # RabbitMQ 3.6 sends before its first credit: then about as much as the link has capacity
        incoming.link.max_credit = _capacity(terms) // CONTAINER_OVERDRAFT + 1
    if terms.max_message_bytes > 0:
        incoming.link.max_message_bytes = terms.max_message_bytes


def _complete_outgoing(home: LinkHome, outgoing: Egress, options: LinkOptions) -> None:
    """Apply the terms of its connection and the options to an outgoing link, and become its owner."""
    terms = options.terms
    if options.entry is not None:
        outgoing.serve_entry(options.entry)
    outgoing.trunk = options.trunk
    outgoing.log = None if terms.log is None else SentLog(terms.log, outgoing)
    outgoing.connection_number = terms.connection_number
    outgoing.max_unsettled = terms.max_unsettled
    outgoing.totals = home.totals if terms.role == ROUTE_CONTAINER else None
    outgoing.link.sink = outgoing


_ANY_SIZE: Final = 0
