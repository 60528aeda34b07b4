"""What holds for all links of one connection, and how it is laid upon a link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .check import MessageCheck
from .counters import AddressCounters
from .edge.peers import EdgePeer
from .egress import Egress
from .ingress import Ingress
from .intake import MessageTap
from .messagelog import MessageLog, SentLog
from .network import Trunk
from .ports import Gate
from .tenants import Tenant

DEFAULT_CAPACITY: Final = 250
EDGE_ROLE: Final = "edge"
ROUTE_CONTAINER: Final = "route-container"
#: Roles of connections that lead to other routers.
ROUTER_ROLES: Final = frozenset({"inter-router", EDGE_ROLE})


@dataclass(frozen=True, slots=True)
class PeerTerms:
    """The terms that hold for every link of one connection."""

    #: Credit of an incoming link, and the backlog from which an outgoing one counts as full; 0 for the default.
    link_capacity: int = DEFAULT_CAPACITY
    #: Router annotations that come in are ignored; those that would go out are left out.
    strip_in: bool = True
    strip_out: bool = True
    #: Of those that come in and are not ignored, where a message has been is kept, and nothing obeyed.
    only_traces: bool = False
    #: Where messages are logged, None for nowhere (routing.md 4.8).
    log: MessageLog | None = None
    #: What gets messages instead of the log and logs them, or None.
    tap: MessageTap | None = None
    #: What management calls the connection, and its role.
    connection_number: int = 0
    role: str = "normal"
    #: Whose addresses the links are about, None for the router's own space.
    tenant: Tenant | None = None
    #: Deliveries that a receiver may have unsettled on one link.
    max_unsettled: int = 1 << 62
    #: The largest message taken in, in octets; 0 for any.
    max_message_bytes: int = 0
    #: What messages are held to, None for nothing.
    check: MessageCheck | None = None
    #: The ``Gate`` that is asked before senders are granted credit, or None.
    gate: Gate | None = None
    #: The connection is one between routers.
    trunk: Trunk | None = None
    #: Which edge router is at the other end, None for none.
    edge: EdgePeer | None = None

    @property
    def via_edge(self) -> bool:
        """Return whether the connection is one between an edge router and the router that it hangs on."""
        return self.role == EDGE_ROLE

    @property
    def is_router(self) -> bool:
        """At the other end is another router, with clients of its own."""
        return self.role in ROUTER_ROLES


def lay_on_ingress(ingress: Ingress, terms: PeerTerms) -> None:
    """Hold an incoming link to the terms of its connection."""
    ingress.log = terms.tap or terms.log
    ingress.connection_number = terms.connection_number
    if terms.via_edge:
        ingress.comes_from_edge()
    hold(ingress, terms.check)
    ingress.gate = terms.gate
    ingress.rewriter.only_traces = terms.only_traces
    ingress.of_container = terms.role == ROUTE_CONTAINER
    if terms.max_message_bytes > 0:
        ingress.link.max_message_bytes = terms.max_message_bytes


def lay_on_egress(egress: Egress, terms: PeerTerms, totals: AddressCounters) -> None:
    """Hold an outgoing link to the terms of its connection; ``totals`` are those of the router."""
    egress.log = None if terms.log is None else SentLog(terms.log, egress)
    egress.connection_number = terms.connection_number
    egress.max_unsettled = terms.max_unsettled
    egress.totals = totals if terms.role == ROUTE_CONTAINER else None


def hold(ingress: Ingress, check: MessageCheck | None) -> None:
    """Hold the messages of a link to ``check``, where it has anything to say to them."""
    asked = check is not None and (ingress.entry is None or check.reads_messages)
    ingress.check = check if asked else None
