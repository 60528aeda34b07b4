"""The edge routers of an interior router, and what it does for them beside clients (inter-router.md 6).

An edge router's downlink makes ``_edge/ID/...`` lead to it. On its tracking link it learns which of the addresses that
it sends to have a receiver elsewhere; on its look-up link it queries whether links to an address are routed. Any client
may send heartbeats, and must go on once it has begun.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

from trouter.core.addresses import MOBILE, temporary_token
from trouter.core.containers import DetachReason
from trouter.core.egress import Egress
from trouter.core.entry import AddressEntry
from trouter.core.ingress import Ingress
from trouter.core.links import Endpoint, LinkOptions, attach_link, make_outgoing, make_receiver
from trouter.core.messagelog import MessageLog
from trouter.core.notes import Note, read, write
from trouter.core.readers import every
from trouter.core.refusals import AttachRefused
from trouter.core.routerport import RouterPort
from trouter.core.routes import IN, OUT
from trouter.core.streams import StreamPool
from trouter.core.terms import DEFAULT_CAPACITY, PeerTerms, network_terms
from trouter.engine.link import IncomingLink, OutgoingLink, add_link
from trouter.engine.session import Session
from trouter.wire.errors import DecodeError
from trouter.wire.performatives import Attach, Error, Source, Target
from trouter.wire.types import UInt

from .peers import EdgePeer, TrackedAddresses
from .protocol import (
    BAD_OPCODE,
    BAD_VERSION,
    DETACH,
    HEARTBEAT,
    HEARTBEAT_CREDIT,
    INVALID,
    LOOKUP,
    LOOKUP_CREDIT,
    LOOKUP_OPCODE,
    LOOKUP_VERSION,
    MAX_EDGE_ID,
    NO_EDGE,
    NOT_FOUND,
    OK,
    ONE_DOWNLINK,
    ONE_TRACKER,
    SILENCE_S,
    STOLEN,
)


class Edges:
    """All connections in the role edge, and all senders of heartbeats."""

    def __init__(self, router: RouterPort) -> None:
        self._router = router
        #: By connection number.
        self.peers: dict[int, EdgePeer] = {}
        self._by_id: dict[str, EdgePeer] = {}
        #: The edge routers that send to an address and track it.
        self._followers: dict[AddressEntry, dict[EdgePeer, None]] = {}
        #: By link, when the last heartbeat came.
        self._beats: dict[Ingress, float] = {}

    # --- links

    def obtain_downlink(self, peer: EdgePeer, edge_id: str) -> AddressEntry:
        """Return the entry that the downlink of ``edge_id`` serves from now on; AttachRefused.

        The last edge router to connect owns its id, because one that lost its connection returns before this router
        notices the loss. A router that authenticated as another user is refused.
        """
        if peer.downlink is not None:
            raise AttachRefused(ONE_DOWNLINK)
        former = self._by_id.get(edge_id)
        if former is not None and former.user != peer.user:
            why = f"edge router {edge_id} is connected as another user on [C{former.number}]"
            raise AttachRefused(Error("amqp:not-allowed", why))
        if former is not None and former.downlink is not None:
            self._router.end_link(former.downlink.link, DetachReason(True, STOLEN))
        peer.id = edge_id
        self._by_id[edge_id] = peer
        return self._router.table.obtain_edge(edge_id)

    def add_tracker(self, peer: EdgePeer, link: OutgoingLink) -> None:
        """Notify an edge router on ``link`` of addresses that it sends to; AttachRefused."""
        if peer.tracker is not None:
            raise AttachRefused(ONE_TRACKER)
        options = LinkOptions(terms=network_terms(peer.number, DEFAULT_CAPACITY), borrows_streams=False)
        router = self._router
        addresses = TrackedAddresses(link, router.shared, lambda note: router.inside.send_on(tracker, note))
        peer.tracker = tracker = make_outgoing(router, link, options, addresses)
        peer.addresses = addresses

    def send_tracked_addresses(self, peer: EdgePeer) -> None:
        """Send the tracked addresses over the tracking link, which is now attached."""
        for entry in peer.sends:
            self._notify_peer(peer, entry)

    def add_sender(self, peer: EdgePeer, entry: AddressEntry) -> None:
        """Note that the edge router sends to an address."""
        if not entry.key.startswith(MOBILE):
            return
        peer.sends[entry] = peer.sends.get(entry, 0) + 1
        self._followers.setdefault(entry, {})[peer] = None
        self._notify_peer(peer, entry)

    def add_lookup(self, link: IncomingLink, number: int) -> Ingress:
        """Answer the look-ups that arrive on ``link`` of connection ``number``; return its sink."""
        options = LinkOptions(terms=network_terms(number, LOOKUP_CREDIT))
        return make_receiver(self._router, link, options, partial(self._read_lookup, number))

    def add_heartbeat(self, link: IncomingLink, number: int) -> Ingress:
        """Receive the heartbeats of an edge router on ``link`` of connection ``number``; return its sink."""
        options = LinkOptions(terms=network_terms(number, HEARTBEAT_CREDIT))
        receiver = make_receiver(self._router, link, options, every(lambda _: self._note_heartbeat(receiver)))
        self._note_heartbeat(receiver)
        return receiver

    def forget_endpoint(self, endpoint: Endpoint) -> None:
        """Forget a lost link of any connection."""
        if isinstance(endpoint, Ingress):
            self._beats.pop(endpoint, None)
        peer = self.peers.get(endpoint.connection_number)
        if peer is None:
            return
        if endpoint is peer.downlink:
            peer.downlink = None
            if self._by_id.get(peer.id) is peer:
                del self._by_id[peer.id]
        elif endpoint is peer.tracker:
            peer.tracker = peer.addresses = None
        elif isinstance(endpoint, Ingress) and endpoint.entry in peer.sends:
            self._remove_tracker(peer, endpoint.entry)

    def _remove_tracker(self, peer: EdgePeer, entry: AddressEntry) -> None:
        peer.sends[entry] -= 1
        if peer.sends[entry]:
            return
        del peer.sends[entry]
        followers = self._followers[entry]
        del followers[peer]
        if not followers:
            del self._followers[entry]
        if peer.addresses is not None:
            peer.addresses.withdraw_address(entry.key)

    # --- tracking

    def notify_followers(self, entry: AddressEntry) -> None:
        """Notify the edge routers that send to a mobile address, whose users have changed."""
        for peer in list(self._followers.get(entry, ())):
            self._notify_peer(peer, entry)

    def tell_all(self) -> None:
        """Notify every edge router of all its addresses: withdrawals were withheld for some time."""
        for peer in self.peers.values():
            self.send_tracked_addresses(peer)

    def _notify_peer(self, peer: EdgePeer, entry: AddressEntry) -> None:
        if peer.addresses is not None:
            peer.addresses.note_takers(entry.key, takes_elsewhere(entry, peer.number))

    # --- heartbeats

    def _note_heartbeat(self, gatherer: Ingress) -> None:
        self._beats[gatherer] = self._router.shared.now_s

    def silent_connections(self) -> set[int]:
        """Return the numbers of the connections whose heartbeat is overdue."""
        due_s = self._router.shared.now_s - SILENCE_S
        return {gatherer.connection_number for gatherer, last_s in self._beats.items() if last_s < due_s}

    # --- look-ups

    def _read_lookup(self, number: int, message: bytes) -> Callable[[], None] | None:
        """Return what answers a look-up of connection ``number``; None for one that names no address to answer.

        The answers go to a dynamic address of that connection: an edge router sends to no other by way of this one.
        """
        try:
            request = read(message)
        except DecodeError:
            return None
        reply_to = request.reply_to or ""
        entry = self._router.table.entries.get(self._router.table.parse(reply_to).key)
        if entry is None or entry.creator != number:
            return None
        return partial(self._answer_lookup, request, reply_to)

    def _answer_lookup(self, request: Note, reply_to: str) -> None:
        """Answer whether links to an address are routed, and whether the address has a receiver."""
        status, answers = self._find_answer(request)
        answer = Note(
            list(answers),
            to=reply_to,
            correlation_id=request.correlation_id,
            properties={"version": UInt(LOOKUP_VERSION), "opcode": UInt(LOOKUP_OPCODE), "status": UInt(status)},
        )
        self._router.inside.send_message(reply_to, write(answer))

    def _find_answer(self, request: Note) -> tuple[int, tuple[bool, bool]]:
        nothing = (False, False)
        if request.properties.get("version") != LOOKUP_VERSION:
            return BAD_VERSION, nothing
        if request.properties.get("opcode") != LOOKUP_OPCODE:
            return BAD_OPCODE, nothing
        body = request.body
        if not (isinstance(body, list) and [type(part) for part in body] == [str, bool]):
            return INVALID, nothing
        text, is_sender = body
        pattern = self._router.routes.find(self._router.table.parse(text).text, IN if is_sender else OUT)
        return (NOT_FOUND, nothing) if pattern is None else (OK, (True, bool(pattern.hops or pattern.routers)))


def takes_elsewhere(entry: AddressEntry, number: int) -> bool:
    """Return whether the address has receivers other than connection ``number`` and the router itself."""
    forwarder = entry.forwarder
    others = forwarder.is_exchange or bool(forwarder.remotes)
    return others or any(consumer.connection_number != number for consumer in forwarder.consumers)


class EdgeRouterPort(RouterPort, Protocol):
    """A router that edge routers may be connected to."""

    @property
    def edges(self) -> Edges:
        """Return the edge routers that are connected to this one."""


def serve(router: EdgeRouterPort, link: IncomingLink, wanted: Attach, terms: PeerTerms, address: str) -> None:
    """Attach a link to one of the services for edge routers; AttachRefused."""
    if router.table.mode != "interior":
        raise AttachRefused(None)
    if address == HEARTBEAT:
        receiver = router.edges.add_heartbeat(link, terms.connection_number)
    elif address == LOOKUP and terms.connection_number in router.edges.peers:
        receiver = router.edges.add_lookup(link, terms.connection_number)
    else:
        raise AttachRefused(None)
    attach_link(link, wanted.source, wanted.target)
    receiver.account.grant_first_credit()


def accept_downlink(
    router: EdgeRouterPort, link: OutgoingLink, wanted: Attach, source: Source, terms: PeerTerms
) -> None:
    """Attach the link that carries everything for an edge router; AttachRefused."""
    edge = router.edges.peers.get(terms.connection_number)
    edge_id = source.address
    if edge is None or source.dynamic or not isinstance(edge_id, str) or not 0 < len(edge_id) <= MAX_EDGE_ID:
        raise AttachRefused(NO_EDGE)
    entry = router.edges.obtain_downlink(edge, edge_id)
    options = LinkOptions(terms=network_terms(terms.connection_number, terms.link_capacity), entry=entry)
    outgoing = edge.downlink = make_outgoing(router, link, options)
    attach_link(link, source, wanted.target)
    entry.add_consumer(outgoing)
    if link.credit > 0:
        outgoing.on_credit(link)


def accept_tracking(router: EdgeRouterPort, link: OutgoingLink, wanted: Attach, edge: EdgePeer) -> None:
    """Attach the link that notifies an edge router where its messages would be taken; AttachRefused."""
    router.edges.add_tracker(edge, link)
    attach_link(link, wanted.source, wanted.target)
    router.edges.send_tracked_addresses(edge)


def open_edge_streams(
    router: RouterPort,
    number: int,
    capacity: int,
    begin: Callable[[], Session],
    end: Callable[[Session], None],
    log: MessageLog | None,
) -> None:
    """Provide links for unfinished messages on connection ``number``; ``begin`` and ``end`` as in ``StreamPool``.

    Like Qpid Dispatch's they have no addresses; the annotations of each message name its address.
    """

    def attach(session: Session) -> Egress:
        link = add_link(session, f"qdlink.{temporary_token()[:15]}", False)
        assert isinstance(link, OutgoingLink)  # noqa: S101 - by its direction
        terms = replace(network_terms(number, capacity), log=log)
        outgoing = make_outgoing(router, link, LinkOptions(terms=terms, borrows_streams=False))
        router.add_endpoint(outgoing, number)
        attach_link(link, Source(expiry_policy=DETACH), Target(expiry_policy=DETACH))
        return outgoing

    def detach(outgoing: Egress) -> None:
        router.detach_link(outgoing.link, True)

    router.network.stream_pools[number] = StreamPool(begin, end, attach, detach)
