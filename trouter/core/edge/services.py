"""Attach the links between edge routers and interior ones that no client has (docs/edge.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from trouter.core.addresses import temporary_token
from trouter.core.egress import Egress
from trouter.core.links import LinkOptions, attach_link, make_egress
from trouter.core.messagelog import MessageLog
from trouter.core.refusals import AttachRefused
from trouter.core.routerport import RouterPort
from trouter.core.streams import Streams
from trouter.core.terms import PeerTerms, network_terms
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
        receiver = router.edges.add_heartbeat(link, terms.connection_number)
    elif address == LOOKUP and terms.edge is not None:
        receiver = router.edges.add_lookup(link, terms.connection_number)
    else:
        raise AttachRefused(None)
    attach_link(link, wanted.source, wanted.target)
    receiver.account.open()


def accept_downlink(
    router: EdgeRouterPort, link: OutgoingLink, wanted: Attach, source: Source, terms: PeerTerms
) -> None:
    """Attach the link that carries everything for an edge router; AttachRefused."""
    edge = terms.edge
    edge_id = source.address
    if edge is None or source.dynamic or not isinstance(edge_id, str) or not 0 < len(edge_id) <= MAX_EDGE_ID:
        raise AttachRefused(NO_EDGE)
    entry = router.edges.obtain_downlink(edge, edge_id)
    options = LinkOptions(terms=network_terms(terms.connection_number, terms.link_capacity), entry=entry)
    egress = edge.downlink = make_egress(router, link, options)
    attach_link(link, source, wanted.target)
    entry.add_consumer(egress)
    if link.credit > 0:
        egress.on_credit(link)


def accept_tracking(router: EdgeRouterPort, link: OutgoingLink, wanted: Attach, edge: EdgePeer) -> None:
    """Attach the link that notifies an edge router where its messages would be taken; AttachRefused."""
    router.edges.add_tracker(edge, link)
    attach_link(link, wanted.source, wanted.target)
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
        terms = replace(network_terms(number, capacity), log=log)
        egress = make_egress(router, link, LinkOptions(terms=terms, lends=False))
        router.enter(egress, number)
        attach_link(link, Source(expiry_policy=_DETACH), Target(expiry_policy=_DETACH))
        return egress

    def detach(egress: Egress) -> None:
        router.detach(egress.link, True)

    router.network.pools[number] = Streams(begin, end, attach, detach)


_DETACH: Final = "link-detach"
#: The longest router id, in characters.
MAX_EDGE_ID: Final = 4096
