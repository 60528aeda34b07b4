"""What this router learns from the messages of others: who is a neighbour, the links and the addresses of each router.

A router is not trusted more than necessary. A connection belongs to the router that spoke first on it. A change of a
router's links goes to all neighbours, not only along the tree, because those behind us may not agree on the tree yet;
other messages go along the tree only, and none is sent on twice.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from .faults import MeshFault
from .knowledge import NEVER, Knowledge
from .messages import (
    Hello,
    LinkStateRequest,
    LinkStateUpdate,
    Message,
    MobileAddressRequest,
    MobileAddressUpdate,
    Newer,
    RouterAdvertisement,
    router_address,
)
from .names import shown
from .nodes import MeshNode
from .pieces import Pieces
from .requests import UNDER_WAY_S, is_due
from .strays import StrayClaim

#: Older advertisements in a row before they are believed: a single one may have been late.
OLDER_IN_A_ROW: Final = 2
#: Seconds before the same advertisement, or an older one, is sent on again: while routers disagree on the tree, it
#: arrives by several ways.
SPREAD_AGAIN_S: Final = 1.0


class Spread(Enum):
    """How far a message for all routers is sent on from here."""

    NOWHERE = auto()
    ALONG_THE_TREE = auto()
    TO_ALL = auto()


class Hearing:
    """Learns from the parsed messages of other routers, and says how far each goes on."""

    def __init__(self, known: Knowledge) -> None:
        self._known = known

    def receive_message(self, message: Message | Newer, connection: int, now_s: float) -> Spread:
        """Process a parsed message from the control link of ``connection``; return how far to send it on.

        An invalid one changes nothing.
        """
        if isinstance(message, Newer):
            self._known.report_fault(
                MeshFault.NEWER_VERSION, f"version {message.version}", connection, now_s, message.id
            )
        elif message.id == self._known.me:
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
            receiving = self.receive_addresses(message, connection, now_s)
            return self._known.later.begin(receiving, message.id, origin=message.id) or Spread.NOWHERE
        return Spread.NOWHERE

    def _receive_namesake(self, message: Message, connection: int, now_s: float) -> None:
        """Report a message with our id from another router; ignore our own messages that come back."""
        if isinstance(message, Hello | RouterAdvertisement) and message.instance != self._known.instance:
            self._known.report_fault(
                MeshFault.SAME_ID, f"instance {message.instance}", connection, now_s, self._known.me
            )

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
        confirmed = self._known.me in hello.seen
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
            if peer == self._known.me:
                peers[self._known.me] = cost
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
        update = LinkStateUpdate(
            self._known.me, self._known.instance, self._known.link_sequence, self._known.own_links()
        )
        self._known.queue_message(update, router_address(router))

    def _receive_address_request(self, request: MobileAddressRequest, connection: int, now_s: float) -> None:
        if request.id not in self._known.nodes:
            self._known.report_fault(MeshFault.UNKNOWN_ROUTER, "it asks for addresses", connection, now_s, request.id)
        elif request.have_sequence < self._known.own.sequence:
            self._known.own.note_request(request.id)
            self._known.answer_addresses()

    def receive_addresses(self, heard: MobileAddressUpdate, connection: int, now_s: float) -> Pieces[Spread]:
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
