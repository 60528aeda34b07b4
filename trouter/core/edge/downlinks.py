"""The edge routers of an interior router, and what it does for them beside clients (inter-router.md 6).

An edge router's downlink makes ``_edge/ID/...`` lead to it. On its tracking link it learns which of the addresses that
it sends to have a receiver elsewhere; on its look-up link it queries whether links to an address are routed. Any client
may send heartbeats, and must go on once it has begun.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from trouter.core.addresses import MOBILE
from trouter.core.containers import DetachReason
from trouter.core.entry import AddressEntry
from trouter.core.gather import Gatherer, every
from trouter.core.ingress import Ingress
from trouter.core.links import Endpoint, LinkOptions, make_egress_by, make_receiver
from trouter.core.notes import Note, read, write
from trouter.core.refusals import AttachRefused
from trouter.core.routerport import RouterPort
from trouter.core.routes import IN, OUT
from trouter.core.terms import DEFAULT_CAPACITY, network_terms
from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.wire.errors import DecodeError
from trouter.wire.performatives import Error
from trouter.wire.types import UInt

from .peers import EdgePeer, EdgeTracker

LOOKUP: Final = "_$qd.addr_lookup"
TRACKING: Final = "_$qd.edge_addr_tracking"
HEARTBEAT: Final = "_$qd.edge_heartbeat"
#: The services of an interior router for edge routers, each for links of one kind (routing.md 1.4).
SERVICES: Final = frozenset({LOOKUP, TRACKING, HEARTBEAT})
DOWNLINK: Final = "qd.router-edge-downlink"

LOOKUP_CREDIT: Final = 32
HEARTBEAT_CREDIT: Final = 2
#: Seconds without a heartbeat after which an edge router is disconnected.
SILENCE_S: Final = 8.0

#: The statuses of a look-up's answer.
OK: Final = 0
BAD_VERSION: Final = 1
BAD_OPCODE: Final = 2
NOT_FOUND: Final = 3
INVALID: Final = 4
LOOKUP_VERSION: Final = 1
LOOKUP_OPCODE: Final = 1

STOLEN: Final = Error("amqp:link:stolen", "the edge router has connected anew")
ONE_DOWNLINK: Final = Error("amqp:not-allowed", "an edge router has one downlink on a connection")
ONE_TRACKER: Final = Error("amqp:not-allowed", "an edge router has one tracking link on a connection")


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
        self._beats: dict[Gatherer, float] = {}

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
            self._router.end(former.downlink.link, DetachReason(True, STOLEN))
        peer.id = edge_id
        self._by_id[edge_id] = peer
        return self._router.table.obtain_edge(edge_id)

    def add_tracker(self, peer: EdgePeer, link: OutgoingLink) -> None:
        """Notify an edge router on ``link`` of addresses that it sends to; AttachRefused."""
        if peer.tracker is not None:
            raise AttachRefused(ONE_TRACKER)
        options = LinkOptions(terms=network_terms(peer.number, DEFAULT_CAPACITY), lends=False)
        peer.tracker = make_egress_by(EdgeTracker, self._router, link, options)
        peer.tracker.track_with(self._router.send_on)

    def trackable(self, peer: EdgePeer) -> None:
        """Send the tracked addresses over the tracking link, which is now attached."""
        for entry in peer.sends:
            self._notify(peer, entry)

    def add_sender(self, peer: EdgePeer, entry: AddressEntry) -> None:
        """Note that the edge router sends to an address."""
        if not entry.key.startswith(MOBILE):
            return
        peer.sends[entry] = peer.sends.get(entry, 0) + 1
        self._followers.setdefault(entry, {})[peer] = None
        self._notify(peer, entry)

    def add_lookup(self, link: IncomingLink, number: int) -> Gatherer:
        """Answer the look-ups that arrive on ``link`` of connection ``number``; return its sink."""
        options = LinkOptions(terms=network_terms(number, LOOKUP_CREDIT))
        return make_receiver(self._router, link, options, self._read)

    def add_heartbeat(self, link: IncomingLink, number: int) -> Gatherer:
        """Receive the heartbeats of an edge router on ``link`` of connection ``number``; return its sink."""
        options = LinkOptions(terms=network_terms(number, HEARTBEAT_CREDIT))
        receiver = make_receiver(self._router, link, options, every(lambda _: self._beat(receiver)))
        self._beat(receiver)
        return receiver

    def lost(self, endpoint: Endpoint) -> None:
        """Forget a lost link of any connection."""
        if isinstance(endpoint, Gatherer):
            self._beats.pop(endpoint, None)
        peer = self.peers.get(endpoint.connection_number)
        if peer is None:
            return
        if endpoint is peer.downlink:
            peer.downlink = None
            if self._by_id.get(peer.id) is peer:
                del self._by_id[peer.id]
        elif endpoint is peer.tracker:
            peer.tracker = None
        elif isinstance(endpoint, Ingress) and endpoint.entry in peer.sends:
            self._leave(peer, endpoint.entry)

    def _leave(self, peer: EdgePeer, entry: AddressEntry) -> None:
        peer.sends[entry] -= 1
        if peer.sends[entry]:
            return
        del peer.sends[entry]
        followers = self._followers[entry]
        del followers[peer]
        if not followers:
            del self._followers[entry]
        if peer.tracker is not None:
            peer.tracker.forget(entry.key)

    # --- tracking

    def look(self, entry: AddressEntry) -> None:
        """Notify the edge routers that send to a mobile address, whose users have changed."""
        for peer in list(self._followers.get(entry, ())):
            self._notify(peer, entry)

    def _notify(self, peer: EdgePeer, entry: AddressEntry) -> None:
        if peer.tracker is not None:
            peer.tracker.notify(entry.key, takes_elsewhere(entry, peer.number))

    # --- heartbeats

    def _beat(self, gatherer: Gatherer) -> None:
        self._beats[gatherer] = self._router.pulse.now_s

    def silent(self) -> set[int]:
        """Return the numbers of the connections whose heartbeat is overdue."""
        due_s = self._router.pulse.now_s - SILENCE_S
        return {gatherer.connection_number for gatherer, last_s in self._beats.items() if last_s < due_s}

    # --- look-ups

    def _read(self, message: bytes) -> Callable[[], None] | None:
        """Return what answers a look-up; None for a malformed one, which names no address to answer."""
        try:
            request = read(message)
        except DecodeError:
            return None
        return partial(self._answer, request, request.reply_to) if request.reply_to else None

    def _answer(self, request: Note, reply_to: str) -> None:
        """Answer whether links to an address are routed, and whether the address has a receiver."""
        status, found = self._find(request)
        answer = Note(
            list(found),
            to=reply_to,
            correlation_id=request.correlation_id,
            properties={"version": UInt(LOOKUP_VERSION), "opcode": UInt(LOOKUP_OPCODE), "status": UInt(status)},
        )
        self._router.send(reply_to, write(answer))

    def _find(self, request: Note) -> tuple[int, tuple[bool, bool]]:
        nothing = (False, False)
        if request.properties.get("version") != LOOKUP_VERSION:
            return BAD_VERSION, nothing
        if request.properties.get("opcode") != LOOKUP_OPCODE:
            return BAD_OPCODE, nothing
        body = request.body
        if not (isinstance(body, list) and [type(each) for each in body] == [str, bool]):
            return INVALID, nothing
        text, is_sender = body
        pattern = self._router.routes.find(self._router.table.parse(text).text, IN if is_sender else OUT)
        return (NOT_FOUND, nothing) if pattern is None else (OK, (True, bool(pattern.hops or pattern.routers)))


def takes_elsewhere(entry: AddressEntry, number: int) -> bool:
    """Return whether the address has receivers other than connection ``number`` and the router itself."""
    forwarder = entry.forwarder
    others = forwarder.standing or bool(forwarder.remotes)
    return others or any(each.connection_number != number for each in forwarder.consumers)
