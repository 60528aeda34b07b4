"""The routing core's interface: links come and go, time passes, snapshots are taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice

from trouter.engine.link_base import Link
from trouter.engine.ports import Delivery, LinkPort, LinkSink
from trouter.engine.session import Session
from trouter.wire.performatives import Error

from .arrival import Arrival
from .attach import attach
from .autolinks import AutoLinks
from .containers import Container, Containers, DetachReason, LinkOwner, OwnSession
from .counters import AddressCounters, Latency, Outcomes
from .edge.downlinks import Edges
from .edge.uplink import Uplink
from .egress import Egress
from .entry import AddressEntry
from .exchanges import Exchanges
from .ingress import Ingress
from .inside import InsideTraffic
from .links import Endpoint
from .losses import fail_sent, lose_outgoing
from .network import Network, Trunk
from .observer import RouterObserver
from .pace import Paces
from .pending_detaches import PendingDetaches
from .ports import SharedState
from .routes import LinkRoute, Routes
from .sections import IN, OUT
from .table import AddressRule, AddressTable
from .terms import PeerTerms
from .watch import OVERDRAWN_TEXT, Notice, Watch, zero_credit_s


class Router:
    """All routing state of one router. Single owner, synchronous; the caller sets ``shared.now_s``."""

    def __init__(
        self,
        router_id: str,
        mode: str = "standalone",
        default_distribution: str = "balanced",
        rules: Iterable[AddressRule] = (),
        observer: RouterObserver | None = None,
        on_route: Callable[[LinkRoute, Container, bool], None] | None = None,
    ) -> None:
        """``observer`` is notified of what the router does by itself.

        ``on_route`` is called with a link route, its container, and whether the container has it from now on.
        """
        self.table = AddressTable(router_id, mode, default_distribution)
        self.shared = SharedState()
        self.totals = AddressCounters()
        self.shared.network = self.table.network
        #: The messages from the router itself, and to it.
        self.inside = InsideTraffic(self.table, self.shared, self.totals)
        #: The edge routers connected to this one.
        #: The hand in which its links take their messages.
        self.arrival = Arrival()
        self.edges = Edges(self)
        self.table.user_listeners.add(self.edges.notify_followers)
        #: The uplink of an edge router, while it has one.
        self.uplink: Uplink | None = None
        #: Every link by its identity, ascending.
        self.links: dict[int, Endpoint] = {}
        #: The numbers for links, configured addresses and routes.
        self.identities: Iterator[int] = count(1)
        #: The links that were lost last; their sinks may still be asked for numbers.
        self._lost: list[Link] = []
        #: This router drains; another worker has closed its connection and is not there again.
        self._leaves = self._sibling_leaves = False
        self._watch = Watch()
        self._paces = Paces()
        self.observer = observer or RouterObserver()
        self.containers = Containers()
        self.routes = Routes(self.table, self._connection_to, on_route)
        self.auto_links = AutoLinks(self)
        self.exchanges = Exchanges(self.table, self.shared, self.totals)
        #: Routed links with one end detached and the other not yet.
        self.pending_detaches = PendingDetaches()
        self.table.id_listeners.add(self._move_senders)
        for rule in rules:
            self.table.add_rule(rule)

    @property
    def latency(self) -> Latency:
        """Ages of deliveries, by class of address and by outcome."""
        return self.shared.latency

    @property
    def outcomes(self) -> Outcomes:
        """Counts of deliveries by outcome and class of address."""
        return self.shared.outcomes

    def next_identity(self) -> int:
        """Return a number that no link, configured address or route of this router had before."""
        return next(self.identities)

    def answer_attach(self, link: Link, terms: PeerTerms, *, goes_up: bool = False) -> Error | None:
        """Answer the peer's attach that created ``link``; return the error if it was refused with one.

        A link that ``goes_up`` is routed over an edge router's uplink.
        """
        error = attach(self, link, terms, goes_up=goes_up)
        endpoint = link.sink
        if isinstance(endpoint, Endpoint) and endpoint.identity == 0:
            self.add_endpoint(endpoint, terms.connection_number)
        if link.attached:
            link.keep_essentials()
        return error

    def add_endpoint(self, endpoint: LinkSink, connection_number: int) -> None:
        """Add a link to the routing, by the endpoint that ``links`` made."""
        assert isinstance(endpoint, Endpoint)  # noqa: S101 - the port does not name the classes
        endpoint.identity = self.next_identity()
        endpoint.connection_number = connection_number
        self.links[endpoint.identity] = endpoint

    @property
    def network(self) -> Network:
        """The other routers."""
        return self.table.network

    def handle_own_attach(self, link: Link) -> bool:
        """Return whether the peer's attach answers one of ours, and handle it then; call it before ``attach``."""
        owner = link.holder
        if not isinstance(owner, LinkOwner):
            return False
        owner.handle_answer(link)
        if link.attached:
            link.keep_essentials()
        return True

    def fail_sent(self, trunk: Trunk) -> None:
        """Give up what was sent to a neighbour: it is silent although the connection is open."""
        for outgoing in list(self.outgoing_endpoints()):
            if outgoing.trunk is trunk and outgoing is not trunk.control_out:
                fail_sent(outgoing)

    def is_own(self, link: Link) -> bool:
        """Return whether this router attached the link by itself."""
        sink = link.sink
        streaming = sink.streaming if isinstance(sink, Egress) else None
        owner = link.holder
        if streaming is not None and streaming.owner is not None:
            return True
        return isinstance(owner, LinkOwner) and owner.is_own_link(link)

    def detach_link(
        self, link: Link, closed: bool, error: Error | None = None, remote_error: Error | None = None
    ) -> None:
        """Settle the deliveries of a link whose peer detached it or that the router ends, and answer the detach.

        ``error`` is ours to the peer, ``remote_error`` the peer's to us. A link that still has an owner afterwards is
        routed; its owner answers the detach when the other end does.
        """
        self._let_go([link])
        self._lose_endpoint(link, DetachReason(closed, remote_error or error))
        if error is not None or link.holder is None:
            link.detach(closed, error)

    def end_link(self, link: Link, reason: DetachReason) -> None:
        """End a link because another one ended, or because it is no longer needed."""
        self._lost.append(link)
        self._lose_endpoint(link, None)
        self.observer.ended(link, reason)
        wanted = link.remote_attach
        link.refuse(reason.error, None if link.incoming or wanted is None else wanted.target)
        link.detach(reason.closed, reason.error)

    def _lose_endpoint(self, link: Link, reason: DetachReason | None) -> None:
        sink = link.sink
        if isinstance(sink, Egress):
            self._lose_outgoing(sink)
        elif isinstance(sink, Ingress):
            self._lose_incoming(sink)
        _notify_owner(link, reason)

    def lose_session(self, session: Session, error: Error | None = None) -> None:
        """Handle the loss of every link of a session in one pass over its deliveries; ``error`` is the peer's."""
        session.stop_writing()  # else a message that the loss of one link frees would begin on another one of them
        own: dict[LinkPort, list[Delivery]] = {}
        for delivery in (*session.deliveries.incoming.all(), *session.deliveries.outgoing.all()):
            own.setdefault(delivery.link, []).append(delivery)
        links = session.links.list_links()
        self._let_go(links)
        for link in links:
            sink = link.sink
            if isinstance(sink, Egress):
                self._lose_outgoing(sink, own.get(link, []))
            elif isinstance(sink, Ingress):
                self._lose_incoming(sink, own.get(link, []))
        if isinstance(session.holder, OwnSession):
            session.holder.refuse_waiting(error)
        for link in links:
            _notify_owner(link, None)

    # --- the edge

    def set_uplink(self, uplink: Uplink | None, way: Egress | None) -> None:
        """Use this uplink of an edge router, and the link ``way`` for all that is elsewhere; None for none."""
        former, self.uplink = self.uplink, uplink
        self.shared.uplink = way
        if former is not None:
            self.table.user_listeners.remove(former.update_links)
            self.network.local_listeners.remove(former.advertise_local)
        if uplink is not None:
            self.table.user_listeners.add(uplink.update_links)
            self.network.local_listeners.add(uplink.advertise_local)

    # --- containers

    def container_came(self, container: Container) -> None:
        """Add a container: links of ours may be attached on its connection, which is open."""
        self.containers.add(container)
        self.routes.container_came(container)
        self.auto_links.container_came(container)

    def container_gone(self, number: int, error: Error | None = None) -> None:
        """Remove the container of an ended connection, if it was one, before its sessions are lost.

        ``error`` is that of the peer's close.
        """
        container = self.containers.remove(number)
        if container is not None:
            self.routes.container_gone(container)
            self.auto_links.container_gone(container)
            container.refuse_waiting(error)

    def _connection_to(self, router_id: str) -> Container | None:
        """Return the connection to the neighbour that leads to another router; None if there is none."""
        router = self.network.routers.get(router_id)
        return None if router is None or router.trunk is None else self.containers.get(router.trunk.number)

    def session_begun(self, session: Session) -> bool:
        """Return whether the peer's begin answers one of ours, so that it needs no answer."""
        own = session.holder
        if not isinstance(own, OwnSession):
            return False
        own.attach_waiting()
        return True

    def _let_go(self, links: list[Link]) -> None:
        """Separate the links lost before these from their sinks, which frees both without the garbage collector."""
        for link in self._lost:
            link.sink = _NO_OWNER
        self._lost = links

    def _lose_incoming(self, incoming: Ingress, own: list[Delivery] | None = None) -> None:
        if self.links.pop(incoming.identity, None) is None:
            return
        self._watch.forget_link(incoming)
        self.shared.owed_accounts.pop(incoming.account, None)
        incoming.lose_link(own)
        if incoming.tenant is not None:
            incoming.tenant.past.update(incoming.counters.as_dict())
        self.edges.forget_endpoint(incoming)
        entry = incoming.entry
        if entry is not None:
            entry.remove_sender(incoming)
            self.table.counts.leave_link(entry, IN, incoming.counters)
            self.table.release_entry(entry)
        self._lose_trunk_link(incoming)

    def _lose_outgoing(self, outgoing: Egress, own: list[Delivery] | None = None) -> None:
        if self.links.pop(outgoing.identity, None) is None:
            return
        self._watch.forget_link(outgoing)
        self.edges.forget_endpoint(outgoing)
        entry, outgoing.entry = outgoing.entry, None
        self._lose_trunk_link(outgoing)
        if outgoing.streaming is not None:
            outgoing.streaming.forget_link(outgoing)
        if isinstance(entry, AddressEntry) and outgoing in entry.forwarder.consumers:  # else routed, or never answered
            entry.remove_consumer(outgoing)
        lose_outgoing(outgoing, own)
        if isinstance(entry, AddressEntry):
            self.table.counts.leave_link(entry, OUT, outgoing.counters)
            self.table.release_entry(entry)

    def _lose_trunk_link(self, endpoint: Endpoint) -> None:
        trunk = endpoint.trunk
        if isinstance(trunk, Trunk):
            trunk.remove_link(endpoint)
            self.network.update_trunk(trunk)

    def _move_senders(self, whole: AddressEntry) -> None:
        """Give the new address of a router the senders that wait for it: where its id ends was not known before."""
        table, shorter = self.table, whole.key
        while "/" in shorter:
            shorter = shorter.rpartition("/")[0]
            former = table.entries.get(shorter)
            if former is None:
                continue
            for sender in list(former.senders):
                if (
                    isinstance(sender, Ingress)
                    and table.parse(sender.destination.rewriter.to_override or "").key == whole.key
                ):
                    former.remove_sender(sender)
                    sender.move_to(whole)
                    whole.add_sender(sender)
            table.release_entry(former)

    def incoming_endpoints(self) -> Iterator[Ingress]:
        """Return an iterator over the links on which peers send."""
        return (endpoint for endpoint in self.links.values() if not isinstance(endpoint, Egress))

    def outgoing_endpoints(self) -> Iterator[Egress]:
        """Return an iterator over the links on which peers receive."""
        return (endpoint for endpoint in self.links.values() if isinstance(endpoint, Egress))

    # --- the end of the router

    def set_leaving(self, leaving: bool) -> None:
        """Withdraw nothing from edge routers while the router is ``leaving``; tell them all once it stays again.

        An edge router of Qpid Dispatch that hears of the end of an address's last receiver, and then loses its
        connection, never sends to the address again.
        """
        self._leaves = leaving
        self._update_leaving()

    def note_sibling(self, *, leaves: bool) -> None:
        """Note that another worker closes its connection in order, or is there again.

        The router stops then, or another worker takes that one's place: until this worker knows which, its edge routers
        hear of no receiver that went with the other.
        """
        self._sibling_leaves = leaves
        self._update_leaving()

    def _update_leaving(self) -> None:
        self.shared.leaving = self._leaves or self._sibling_leaves or self.shared.stopping
        if not self.shared.leaving:
            self.edges.tell_all()

    def stop_credit(self) -> None:
        """Grant no more credit, and drain every sender; what routers tell each other about themselves goes on."""
        self.shared.stopping = True
        self.set_leaving(True)
        for incoming in self.incoming_endpoints():
            if not incoming.account.goes_on:
                incoming.link.drain()

    def count_unsettled(self) -> int:
        """Return the number of deliveries without an outcome, or not sent on yet."""
        unsettled = sum(incoming.unsettled for incoming in self.incoming_endpoints())
        return unsettled + sum(outgoing.waiting.count for outgoing in self.outgoing_endpoints())

    def return_owed_credit(self, max_links: int) -> bool:
        """Grant the credit owed to senders that sent nothing since the last call; return whether to call again.

        Each call handles up to ``max_links`` links.
        """
        owed = self.shared.owed_accounts
        for account in list(islice(owed, max_links)):
            del owed[account]
            if not account.return_owed():
                owed[account] = None
        return bool(owed)

    # --- stuck deliveries, blocked links

    def watch_links(self, now_s: float) -> list[Notice]:
        """Return notices of stuck deliveries and blocked links, and measure rates; to be called about once a second.

        Each call handles a bounded portion.
        """
        self.shared.now_s = now_s
        self._let_go([])
        self._paces.scan(self.links.values(), now_s)
        self.exchanges.stalls.scan(now_s)
        self.pending_detaches.scan(now_s)
        notices = [Notice(link, OVERDRAWN_TEXT) for link in self.shared.overdrawing if link.attached]
        self.shared.overdrawing.clear()
        return notices + self._watch.scan(self.links.values(), now_s)

    def deliveries_stuck(self, link: Link | None = None) -> int:
        """Return the number of deliveries older than 10 s, on ``link`` or all; a waiting one counts on both ends."""
        if link is None:
            return self._watch.count_stuck()
        return self._watch.count_stuck(link.sink) if isinstance(link.sink, Endpoint) else 0

    def links_blocked(self) -> int:
        """Return the number of links without credit for more than 10 s."""
        return self._watch.count_blocked(self.shared.now_s)

    def zero_credit_s(self, link: Link) -> float:
        """Return the seconds that ``link`` has been without credit; 0 with credit."""
        sink = link.sink
        return zero_credit_s(sink, self.shared.now_s) if isinstance(sink, Endpoint) else 0.0


def _notify_owner(link: Link, reason: DetachReason | None) -> None:
    """Notify the owner of the link, once, that it has ended."""
    owner = link.holder
    if isinstance(owner, LinkOwner):
        link.holder = None
        owner.handle_end(link, reason)


#: The sink of links without an owner.
_NO_OWNER = LinkSink()
