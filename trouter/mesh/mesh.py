"""The part of one router in the network (inter-router.md 4): neighbours, link states, ways, and mobile addresses.

Time is an argument, in seconds of a monotonic clock. Messages and control links enter through the methods; the results
are in ``events`` until they are taken. ``tick`` is called once a second.

A router is not trusted more than necessary. A connection belongs to the router that spoke first on it. A change of a
router's links goes to all neighbours, not only along the tree, because those behind us may not agree on the tree yet;
other messages go along the tree only, and none is sent on twice. What is stored, requested, answered and computed in a
second is bounded.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from enum import Enum, auto
from typing import Final, TypeVar

from trouter.wire.errors import DecodeError

from .events import Event, Forward
from .faults import MeshFault
from .hellos import HALF_TICK_S, ControlLink
from .knowledge import NEVER, Knowledge, Timers
from .messages import (
    Hello,
    LinkStateRequest,
    LinkStateUpdate,
    Message,
    MobileAddressRequest,
    MobileAddressUpdate,
    Newer,
    RouterAdvertisement,
    find_body,
    mobile_address,
    router_address,
)
from .names import shown
from .nodes import MeshNode
from .paths import Paths
from .pieces import SMALL_BYTES, Pieces, parse_in_pieces
from .relay import HELLO_ADDRESS, LINKS_ADDRESS, MOBILE_ADDRESS, Dropped, Relay, relay
from .requests import UNDER_WAY_S, is_due
from .strays import StrayClaim

__all__ = ["ORPHAN_TICKS", "TAKEN_AT", "Mesh", "Spread", "Timers"]

#: Ticks for which a router that no other router lists is kept.
ORPHAN_TICKS: Final = 3
#: Older advertisements in a row before they are believed: a single one may have been late.
OLDER_IN_A_ROW: Final = 2
#: Seconds before the same advertisement, or an older one, is sent on again: while routers disagree on the tree, it
#: arrives by several ways.
SPREAD_AGAIN_S: Final = 1.0
#: The address of each message; a hello that was relayed does not make its sender a neighbour.
TAKEN_AT: Final[Mapping[type, str]] = {
    Hello: HELLO_ADDRESS,
    RouterAdvertisement: LINKS_ADDRESS,
    LinkStateRequest: LINKS_ADDRESS,
    LinkStateUpdate: LINKS_ADDRESS,
    MobileAddressRequest: MOBILE_ADDRESS,
    MobileAddressUpdate: MOBILE_ADDRESS,
}


#: The opcodes of messages that only come over a connection that leads to their router.
UPDATES: Final = frozenset({"LSU", "MAU"})

T = TypeVar("T")


class Spread(Enum):
    """How far a message for all routers is sent on from here."""

    NOWHERE = auto()
    ALONG_THE_TREE = auto()
    TO_ALL = auto()


class Mesh:
    """The router ``me``, started at ``instance`` (seconds since 1970), as a member of the network.

    An ``instance`` must be greater than those of former starts with the same id, because other routers compare them.
    """

    def __init__(self, me: str, instance: int, timers: Timers | None = None) -> None:
        self.me = me
        self.instance = instance
        #: The network as it is known, and what follows from changes of it.
        self._known = Knowledge(me, instance, timers)

    # --- the state of the network

    @property
    def events(self) -> list[Event]:
        """Events that the holder has not carried out yet; it clears the list."""
        return self._known.events

    @property
    def paths(self) -> Paths:
        """Ways through the network."""
        return self._known.paths

    @property
    def last_change_s(self) -> float:
        """When the network last changed."""
        return self._known.last_change_s

    @property
    def neighbours(self) -> Mapping[str, int]:
        """Connection that leads to each neighbour."""
        return self._known.neighbours

    @property
    def links(self) -> Mapping[int, ControlLink]:
        """Control links, by connection."""
        return self._known.links

    @property
    def routers(self) -> Mapping[str, MeshNode]:
        """Other routers that are known, reachable or not, by id."""
        return self._known.nodes

    @property
    def faults(self) -> Mapping[MeshFault, int]:
        """Counts of the faults of other routers."""
        return self._known.faults

    def addresses_of(self, router: str) -> Mapping[str, int]:
        """Return the address keys of another router, each with its hint; none for an unknown router."""
        node = self._known.nodes.get(router)
        return {} if node is None else node.addresses

    # --- local events

    def link_up(self, connection: int, cost: int, now_s: float) -> None:
        """Send hellos over the control link of ``connection`` from now on."""
        self._known.events.append(self._known.hellos.add_link(connection, cost, now_s))

    def link_down(self, connection: int, now_s: float) -> None:
        """Forget the control link, which has ended, and its neighbour, unless that is heard over another connection.

        This is advertised at once, not at the next tick: messages take another way as soon as all routers know.
        """
        link = self._known.hellos.remove_link(connection)
        if link is not None and self._known.neighbours.get(link.router) == connection:
            self._known.choose_way(link.router, now_s, "connection lost")
            self._known.advertise_at_once(now_s)

    def set_detour_cost(self, cost: int, now_s: float) -> None:
        """Advertise that each link of this router costs so much more than it does, so that messages between others take
        another way if there is one; 0 ends that.
        """
        self._known.set_detour_cost(cost, now_s)

    def add_address(self, key: str, hint: int) -> None:
        """Note that a local receiver listens on ``key``, to be advertised at the next tick or before."""
        self._known.own.add_address(key, hint)

    def delete_address(self, key: str) -> None:
        """Note that no local receiver listens on ``key`` any longer, to be advertised at the next tick or before."""
        self._known.own.delete_address(key)

    def advertise_addresses(self, now_s: float) -> None:
        """Advertise the changes of our addresses now, between two ticks; at the next tick if they change often.

        Until other routers know that the last receiver has left, they send here what can only be released.
        """
        if self._known.address_news_left > 0 and self._known.advertise_address_changes():
            self._known.address_news_left -= 1
            if self._known.links:
                self._known.advertise_sequences(now_s)

    # --- time

    def tick(self, now_s: float) -> None:
        """Do the work of each second: send hellos and advertisements, forget silent routers."""
        self._known.renew_bounds()
        self._known.requests.renew_allowance()
        self._known.own.renew_allowance()
        self._known.events += self._known.hellos.due_hellos(now_s)
        calm = self._known.is_calm(now_s)
        interval_s = self._known.timers.ra_interval_s if calm else self._known.timers.ra_interval_flux_s
        advertise = now_s - self._known.last_ra_s >= interval_s - HALF_TICK_S
        self._forget_silent_routers(now_s)
        for claim in self._known.strays.due_reports(now_s):
            self._known.report_claim(claim, now_s)
        self._known.compute_ways(now_s)
        if self._known.count_links():
            advertise = True
        self._known.note_updates_under_way(now_s)
        self._known.events += self._known.requests.due_repeats(self._known.paths.next_hop, now_s)
        self._known.events += self._known.requests.due_refreshes(self._known.paths.next_hop, now_s)
        if self._known.advertise_address_changes():
            advertise = True
        self._answer_addresses()
        if advertise and self._known.links:
            self._known.advertise_sequences(now_s)

    @property
    def silent_at_s(self) -> float:
        """Time when the first neighbour will have been silent for too long; inf without neighbours."""
        heard_s = [self._known.links[connection].confirmed_s for connection in self._known.neighbours.values()]
        return min(heard_s, default=float("inf")) + self._known.hellos.max_age_s

    def check_silence(self, now_s: float) -> None:
        """Drop neighbours silent for too long, between two ticks, at ``silent_at_s``; advertise that at once."""
        for router in list(self._known.neighbours):
            self._known.choose_way(router, now_s, "no hello")
        self._known.advertise_at_once(now_s)

    def _forget_silent_routers(self, now_s: float) -> None:
        for router in list(self._known.neighbours):
            self._known.choose_way(router, now_s, "no hello")
        listed = set(self._known.neighbours)
        for router, node in self._known.nodes.items():
            if node.peers and now_s - node.heard_s > self._known.timers.remote_ls_max_age_s:
                self._known.nodes.set_neighbours(node, {})
                node.link_sequence, node.answered = 0, False
                self._known.note_changed_links(now_s, f"{shown(router)} is silent", f"{router}:0")
            listed.update(node.peers)
        for router, node in list(self._known.nodes.items()):
            if node.peers or router in listed:
                node.orphan_ticks = 0
                continue
            node.orphan_ticks += 1
            if node.orphan_ticks >= ORPHAN_TICKS:
                self._known.forget_node(node)

    # --- messages

    def take_message(self, data: bytes, connection: int, now_s: float) -> Relay:
        """Process the message ``data`` from the control link of ``connection``; return where to send it on."""
        try:
            way = relay(data, self.me, self._known.paths)
            if not way.address:
                return way if self._may_pass(way, data, connection, now_s) else Relay("")
            waits = way.address == MOBILE_ADDRESS or len(data) > SMALL_BYTES
            lane = self._lane_of(connection)
            if waits and not self._known.later.has_room(len(data), lane):
                raise Dropped(MeshFault.TOO_MANY, "bytes of messages that wait")
        except Dropped as dropped:
            self._known.report_fault(dropped.fault, dropped.detail, connection, now_s)
        except DecodeError as error:
            self._known.report_fault(MeshFault.MALFORMED, str(error), connection, now_s)
        else:
            taking = self._take(data, way, connection, now_s)
            if waits:
                subject = self._subject_of(way, connection)
                return self._known.later.begin(taking, subject, lane, len(data), way.origin or "") or Relay("")
            return _result_of(taking)
        return Relay("")

    def _lane_of(self, connection: int) -> Hashable:
        """Return the neighbour on a connection, or the connection as long as no router is known there."""
        link = self._known.links.get(connection)
        return connection if link is None else link.router or connection

    def _subject_of(self, way: Relay, connection: int) -> Hashable:
        """Return the router that a message is about; the connection if that may not bring messages of the router.

        A router that sends a message itself need not name itself in its annotations.
        """
        router = way.origin or self._lane_of(connection)
        if isinstance(router, str) and self._known.may_come_over(connection, router):
            return router
        return connection

    @property
    def has_pieces(self) -> bool:
        """True if messages about addresses wait for ``do_piece``."""
        return len(self._known.later) > 0

    def do_piece(self) -> None:
        """Do a piece of the work on messages about addresses."""
        result = self._known.later.do_piece()
        if isinstance(result, Relay) and result.hops:
            self._known.events.append(Forward(result.hops, result.data))

    def _take(self, data: bytes, way: Relay, connection: int, now_s: float) -> Pieces[Relay]:
        """Process a message for this router, in pieces if it is large; return where to send it on."""
        try:
            message = yield from parse_in_pieces(data)
            if TAKEN_AT.get(type(message), way.address) != way.address:
                raise DecodeError(f"{type(message).__name__} is not taken at {way.address[:32]!r}")
            if way.origin not in (None, message.id) and way.address != HELLO_ADDRESS:
                raise Dropped(MeshFault.OTHER_AUTHOR, f"{shown(way.origin or '')}, not {shown(message.id)}")
        except Dropped as dropped:
            self._known.report_fault(dropped.fault, dropped.detail, connection, now_s)
        except DecodeError as error:
            self._known.report_fault(MeshFault.MALFORMED, str(error), connection, now_s)
        else:
            if isinstance(message, MobileAddressUpdate) and message.id != self.me:
                spread = yield from self._receive_addresses(message, connection, now_s)
            else:
                spread = self.receive_message(message, connection, now_s)
            if spread is Spread.TO_ALL:
                return replace(way, hops=way.around)
            return way if spread is Spread.ALONG_THE_TREE else replace(way, hops=())
        return Relay("")

    def _may_pass(self, way: Relay, data: bytes, connection: int, now_s: float) -> bool:
        """Return whether to send a message for another router on; that router believes what comes from here."""
        if way.origin is None or self._known.may_come_over(connection, way.origin):
            return True
        if find_body(data)[0] not in UPDATES:
            return True
        if self._known.is_calm(now_s):
            self._known.report_fault(MeshFault.OFF_PATH, shown(way.origin), connection, now_s)
        return False

    def receive_message(self, message: Message | Newer, connection: int, now_s: float) -> Spread:
        """Process a parsed message from the control link of ``connection``; return how far to send it on.

        An invalid one changes nothing.
        """
        if isinstance(message, Newer):
            self._known.report_fault(
                MeshFault.NEWER_VERSION, f"version {message.version}", connection, now_s, message.id
            )
        elif message.id == self.me:
            self._receive_namesake(message, connection, now_s)
        elif isinstance(message, Hello):
            self._receive_hello(message, connection, now_s)
        elif isinstance(message, RouterAdvertisement):
            return self._receive_advertisement(message, connection, now_s)
        elif isinstance(message, LinkStateRequest):
            node = self._known.obtain_node(message.id, connection, now_s)
            if node is not None:
                self._answer_links(message.id)
                self._known.events += self._known.requests.in_return(node, self._known.paths.next_hop, now_s)
        elif isinstance(message, LinkStateUpdate):
            self._receive_links(message, connection, now_s)
        elif isinstance(message, MobileAddressRequest):
            self._receive_address_request(message, connection, now_s)
        else:
            receiving = self._receive_addresses(message, connection, now_s)
            return self._known.later.begin(receiving, message.id, origin=message.id) or Spread.NOWHERE
        return Spread.NOWHERE

    def _receive_namesake(self, message: Message, connection: int, now_s: float) -> None:
        """Report a message with our id from another router; ignore our own messages that come back."""
        if isinstance(message, Hello | RouterAdvertisement) and message.instance != self.instance:
            self._known.report_fault(MeshFault.SAME_ID, f"instance {message.instance}", connection, now_s, self.me)

    def _receive_hello(self, hello: Hello, connection: int, now_s: float) -> None:
        link = self._known.links.get(connection)
        if link is None:
            return
        if link.router not in ("", hello.id):
            self._known.report_fault(MeshFault.SECOND_ROUTER, shown(hello.id), connection, now_s)
            return
        link.router, link.instance, link.heard_s = hello.id, hello.instance, now_s
        self._known.events += self._known.hellos.answer_hello(
            connection, now_s
        )  # before requests: the other router must know us first
        fresh = (other for other in self._known.links.values() if self._known.hellos.is_fresh(other, hello.id, now_s))
        if any(other.instance > hello.instance for other in fresh):
            self._known.report_fault(MeshFault.SHARED_ID, f"instance {hello.instance}", connection, now_s, hello.id)
            return
        confirmed = self.me in hello.seen
        node = self._known.obtain_node(hello.id, connection, now_s) if confirmed else self._known.nodes.get(hello.id)
        if node is None:
            return
        self._known.note_instance(node, hello.instance, now_s)
        if confirmed:
            link.confirmed_s = node.heard_s = now_s
            self._known.choose_way(hello.id, now_s, "")
        self._known.advertise_at_once(now_s)

    def _receive_advertisement(self, heard: RouterAdvertisement, connection: int, now_s: float) -> Spread:
        node = self._known.obtain_node(heard.id, connection, now_s)
        if node is None or self._is_late(node, heard, connection, now_s):
            return Spread.NOWHERE
        node.heard_s = now_s
        known = (node.instance, node.advertised_links)
        self._known.note_instance(node, heard.instance, now_s)
        node.advertises = True
        node.advertised_links = max(heard.link_sequence, 1)
        if heard.mobile_sequence > node.advertised_addresses:
            node.requested_addresses_s = NEVER
        node.advertised_addresses = heard.mobile_sequence
        node.spread_change = min(node.spread_change, heard.mobile_sequence)
        news = known != (node.instance, node.advertised_links)
        self._known.compute_ways(now_s)
        if news or is_due(node.requested_links_s, now_s):
            self._known.query_links(node, now_s)
        if node.has_spread(heard) and now_s - node.spread_s < SPREAD_AGAIN_S:
            return Spread.NOWHERE
        node.spread, node.spread_s = heard, now_s
        return Spread.TO_ALL if news and heard.id in self._known.paths.next_hop else Spread.ALONG_THE_TREE

    def _is_late(self, node: MeshNode, heard: RouterAdvertisement, connection: int, now_s: float) -> bool:
        """Return whether the advertisement is older than what is known, and so late, or another router's.

        A router whose advertisements stay older has restarted in the same second, or with its clock set back; for a
        neighbour, its hellos give the current instance.
        """
        link = self._known.links.get(self._known.neighbours.get(node.id, -1))
        instance = heard.instance if node.instance is None else node.instance
        strange = heard.instance < instance if link is None else heard.instance != link.instance
        older = heard.link_sequence < node.link_sequence or heard.mobile_sequence < node.mobile_sequence
        if not strange and heard.instance == instance and not older:
            node.older_in_a_row = 0
            return False
        if node.id in self._known.paths.next_hop and not self._known.may_come_over(connection, node.id):
            claim = StrayClaim(connection, MeshFault.OFF_PATH, f"{shown(node.id)}, a restart", heard.instance)
            self._known.note_doubtful_claim(node, claim, now_s)
            return True
        if not strange and heard.instance != instance:
            node.older_in_a_row = 0
            return False
        node.older_in_a_row += 1
        if node.older_in_a_row >= OLDER_IN_A_ROW and not (strange and link):
            self._known.restart_node(node, now_s)
            return False
        node.strange_starts += strange
        if node.strange_starts > 1:
            self._known.report_fault(MeshFault.SHARED_ID, f"instance {heard.instance}", connection, now_s, node.id)
        return True

    def _receive_links(self, heard: LinkStateUpdate, connection: int, now_s: float) -> None:
        node = self._known.obtain_node(heard.id, connection, now_s)
        if node is None:
            return
        if not self._known.may_come_over(connection, heard.id):
            claim = StrayClaim(connection, MeshFault.OFF_PATH, shown(heard.id), None, heard.link_sequence)
            self._known.note_doubtful_claim(node, claim, now_s, self._known.is_calm(now_s))
            return
        is_late = heard.instance and node.instance not in (
            None,
            heard.instance,
        )  # of a former start, and under way since
        node.answered = node.answered or not is_late
        if heard.link_sequence <= node.link_sequence:
            node.requested_links_s = NEVER  # its answer, from before it counted its links
            return
        if is_late:
            return
        node.instance = node.instance or heard.instance or None  # else its next start would look like this one
        node.heard_s = now_s
        is_first = node.link_sequence == 0
        node.link_sequence = heard.link_sequence
        peers: dict[str, int] = {}
        for peer, cost in heard.peers.items():
            if peer == self.me:
                peers[self.me] = cost
            elif peer != heard.id and (other := self._known.obtain_node(peer, connection, now_s)) is not None:
                peers[other.id] = cost
        if peers == node.peers:
            pass
        elif self._known.nodes.set_neighbours(node, peers):
            self._known.note_changed_links(
                now_s, f"{shown(heard.id)} has other neighbours", f"{heard.id}:{heard.link_sequence}"
            )
            self._known.compute_ways(now_s)
        else:
            self._known.report_fault(
                MeshFault.TOO_MANY, f"{len(peers)} links beside all others", connection, now_s, heard.id
            )
        if is_first and node.requested_addresses_s == NEVER:
            self._known.events += self._known.requests.about_addresses(
                node, self._known.paths.next_hop, now_s, unprompted=True
            )

    def _answer_links(self, router: str) -> None:
        update = LinkStateUpdate(self.me, self.instance, self._known.link_sequence, self._known.own_links())
        self._known.queue_message(update, router_address(router))

    def _receive_address_request(self, request: MobileAddressRequest, connection: int, now_s: float) -> None:
        if request.id not in self._known.nodes:
            self._known.report_fault(MeshFault.UNKNOWN_ROUTER, "it asks for addresses", connection, now_s, request.id)
        elif request.have_sequence < self._known.own.sequence:
            self._known.own.note_request(request.id)
            self._answer_addresses()

    def _answer_addresses(self) -> None:
        """Send all our addresses to the routers that requested them; some wait for the next tick if that is much."""
        for router, update in self._known.own.due_answers():
            self._known.queue_message(update, mobile_address(router))

    def _receive_addresses(self, heard: MobileAddressUpdate, connection: int, now_s: float) -> Pieces[Spread]:
        node = self._known.nodes.get(heard.id)
        if node is None:
            self._known.report_fault(MeshFault.UNKNOWN_ROUTER, "it tells addresses", connection, now_s, heard.id)
            return Spread.NOWHERE
        if not self._known.may_come_over(connection, heard.id):
            at_once = heard.exist is not None and self._known.is_calm(now_s)
            claim = StrayClaim(connection, MeshFault.OFF_PATH, shown(heard.id), mobile_sequence=heard.sequence)
            self._known.note_doubtful_claim(node, claim, now_s, at_once)
            return Spread.NOWHERE
        if heard.exist is not None:
            if self._is_wanted(node, heard, connection, now_s):
                yield from self._known.store_update(node, heard, connection, now_s)
        elif heard.sequence == node.mobile_sequence + 1:
            yield from self._known.store_update(node, heard, connection, now_s)
        elif heard.sequence > node.mobile_sequence:
            unrequested = not node.wants_addresses()
            node.advertised_addresses = max(heard.sequence, node.advertised_addresses)
            if unrequested or is_due(node.requested_addresses_s, now_s):
                self._known.events += self._known.requests.about_addresses(node, self._known.paths.next_hop, now_s)
        if heard.sequence <= node.spread_change:
            return Spread.NOWHERE
        node.spread_change = heard.sequence
        return Spread.ALONG_THE_TREE

    def _is_wanted(self, node: MeshNode, heard: MobileAddressUpdate, connection: int, now_s: float) -> bool:
        """Return whether an update of all addresses is new and was requested."""
        if heard.sequence < node.mobile_sequence:
            return False
        asked = now_s - node.asked_addresses_s <= UNDER_WAY_S
        if not asked or (node.advertises and heard.sequence > node.advertised_addresses):
            claim = StrayClaim(connection, MeshFault.UNREQUESTED, shown(node.id), mobile_sequence=heard.sequence)
            self._known.note_doubtful_claim(node, claim, now_s)
        return asked and not (node.advertises and heard.sequence > node.advertised_addresses)


def _result_of(pieces: Pieces[T]) -> T:
    """Return the result of work after all its pieces."""
    while True:
        try:
            next(pieces)
        except StopIteration as over:
            return over.value  # type: ignore[no-any-return]  # the result of a generator has no type there
