"""How links of edge routers are attached that no client has (inter-router.md 1.3, 6.2, 6.4-6.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.wire.performatives import Attach, Error, Source

from .edges import DOWNLINK, HEARTBEAT, LOOKUP, SERVICES, TRACKING, EdgePeer
from .egress import Egress
from .latency import family_of
from .refusals import Refused
from .terms import DEFAULT_CAPACITY, PeerTerms

if TYPE_CHECKING:
    from .router import Router

__all__ = ["DOWNLINK", "SERVICES", "TRACKING", "accept_downlink", "accept_tracking", "serve"]

NO_EDGE: Final = Error("amqp:invalid-field", "the source of a downlink is the id of an edge router")


def serve(router: Router, link: IncomingLink, wanted: Attach, terms: PeerTerms, address: str) -> None:
    """Attach a link to one of the services for edge routers; Refused."""
    if router.table.mode != "interior":
        raise Refused(None)
    if address == HEARTBEAT:
        gatherer = router.edges.add_heartbeat(link)
    elif address == LOOKUP and terms.edge is not None:
        gatherer = router.edges.add_lookup(link)
    else:
        raise Refused(None)
    gatherer.connection_number = terms.connection_number
    link.attach(wanted.source, wanted.target, rcv_settle_mode=0, max_message_size=0)
    gatherer.open()


def accept_downlink(router: Router, link: OutgoingLink, wanted: Attach, source: Source, terms: PeerTerms) -> None:
    """Everything that is for an edge router goes over this link; Refused."""
    edge = terms.edge
    edge_id = source.address
    if edge is None or source.dynamic or not isinstance(edge_id, str) or not 0 < len(edge_id) <= MAX_EDGE_ID:
        raise Refused(NO_EDGE)
    if "/" in edge_id:  # it could never be written in an address
        raise Refused(NO_EDGE)
    egress = Egress(link, router.pulse, terms.link_capacity or DEFAULT_CAPACITY, False, False)
    found = router.edges.add_downlink(edge, egress, edge_id)
    if isinstance(found, Error):
        raise Refused(found)
    egress.record = found
    egress.family = family_of(found.key)
    egress.connection_number = terms.connection_number
    link.sink = egress
    link.attach(source, wanted.target, rcv_settle_mode=0, max_message_size=0)
    found.add_consumer(egress)
    if link.credit > 0:
        egress.on_credit(link)


def accept_tracking(router: Router, link: OutgoingLink, wanted: Attach, edge: EdgePeer) -> None:
    """An edge router hears over this link where its messages would be taken; Refused."""
    refused = router.edges.add_tracker(edge, link, DEFAULT_CAPACITY)
    if refused is not None:
        raise Refused(refused)
    link.attach(wanted.source, wanted.target, rcv_settle_mode=0, max_message_size=0)
    router.edges.trackable(edge)


#: Ids of routers are not longer.
MAX_EDGE_ID: Final = 4096
