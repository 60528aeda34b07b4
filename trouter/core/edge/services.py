"""Attach the links between edge routers and interior ones that no client has (docs/edge.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from trouter.core.addresses import temporary_token
from trouter.core.egress import Egress
from trouter.core.latency import family_of
from trouter.core.messagelog import MessageLog, SentLog
from trouter.core.refusals import AttachRefused
from trouter.core.routerport import RouterPort
from trouter.core.streams import Streams
from trouter.core.terms import DEFAULT_CAPACITY, PeerTerms
from trouter.engine.link import IncomingLink, OutgoingLink, add_link
from trouter.engine.session import Session
from trouter.wire.performatives import Attach, Error, Source, Target

from .downlinks import DOWNLINK, HEARTBEAT, LOOKUP, SERVICES, TRACKING, Edges
from .peers import EdgePeer

__all__ = ["DOWNLINK", "SERVICES", "TRACKING", "accept_downlink", "accept_tracking", "serve"]

NO_EDGE: Final = Error("amqp:invalid-field", "the source of a downlink is the id of an edge router")


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
        gatherer = router.edges.add_heartbeat(link)
    elif address == LOOKUP and terms.edge is not None:
        gatherer = router.edges.add_lookup(link)
    else:
        raise AttachRefused(None)
    gatherer.connection_number = terms.connection_number
    link.attach(wanted.source, wanted.target, rcv_settle_mode=0, max_message_size=0)
    gatherer.open()


def accept_downlink(
    router: EdgeRouterPort, link: OutgoingLink, wanted: Attach, source: Source, terms: PeerTerms
) -> None:
    """Attach the link that carries everything for an edge router; AttachRefused."""
    edge = terms.edge
    edge_id = source.address
    if edge is None or source.dynamic or not isinstance(edge_id, str) or not 0 < len(edge_id) <= MAX_EDGE_ID:
        raise AttachRefused(NO_EDGE)
    egress = Egress(link, router.pulse, terms.link_capacity or DEFAULT_CAPACITY, False, False)
    found = router.edges.add_downlink(edge, egress, edge_id)
    if isinstance(found, Error):
        raise AttachRefused(found)
    egress.entry = found
    egress.family = family_of(found.key)
    egress.connection_number = terms.connection_number
    egress.lend_from(router.network.pools.get(terms.connection_number))
    link.sink = egress
    link.attach(source, wanted.target, rcv_settle_mode=0, max_message_size=0)
    found.add_consumer(egress)
    if link.credit > 0:
        egress.on_credit(link)


def accept_tracking(router: EdgeRouterPort, link: OutgoingLink, wanted: Attach, edge: EdgePeer) -> None:
    """Attach the link that notifies an edge router where its messages would be taken; AttachRefused."""
    refused = router.edges.add_tracker(edge, link, DEFAULT_CAPACITY)
    if refused is not None:
        raise AttachRefused(refused)
    link.attach(wanted.source, wanted.target, rcv_settle_mode=0, max_message_size=0)
    router.edges.trackable(edge)


def open_edge_streams(
    router: RouterPort,
    number: int,
    capacity: int,
    begin: Callable[[], Session],
    end: Callable[[Session], None],
    log: MessageLog | None,
) -> None:
    """Provide links for unfinished messages on connection ``number``; ``begin`` and ``end`` as in ``Streams``.

    Like Qpid Dispatch's they have no addresses; the annotations of each message name its address.
    """

    def attach(session: Session) -> Egress:
        link = add_link(session, f"qdlink.{temporary_token()[:15]}", False)
        assert isinstance(link, OutgoingLink)  # noqa: S101 - by its direction
        egress = Egress(link, router.pulse, capacity, False, False)
        egress.log = None if log is None else SentLog(log, egress)
        link.sink = egress
        router.enter(egress, number)
        link.attach(Source(expiry_policy=_DETACH), Target(expiry_policy=_DETACH), rcv_settle_mode=0, max_message_size=0)
        return egress

    def detach(egress: Egress) -> None:
        router.detach(egress.link, True)

    router.network.pools[number] = Streams(begin, end, attach, detach)


_DETACH: Final = "link-detach"
#: The longest router id, in characters.
MAX_EDGE_ID: Final = 4096
