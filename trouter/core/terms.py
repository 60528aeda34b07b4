"""The terms of all links of one connection; `links` applies them to a link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .arrival import MessageTap
from .check import MessageCheck
from .messagelog import MessageLog
from .network import Trunk
from .ports import Gate
from .tenants import Tenant

DEFAULT_CAPACITY: Final = 250
EDGE_ROLE: Final = "edge"
ROUTE_CONTAINER: Final = "route-container"
#: How often a broker may overdraw the most credit that a link of it had: RabbitMQ 3 adds the credit of every flow that
#: crosses messages under way, so it overdraws by one such credit for each flow.
CONTAINER_OVERDRAFT: Final = 64
#: Roles of connections to other routers.
ROUTER_ROLES: Final = frozenset({"inter-router", EDGE_ROLE})


@dataclass(frozen=True, slots=True)
class PeerTerms:
    """The terms of every link of one connection."""

    #: Credit of an incoming link, and the load that makes an outgoing one full; 0 for the default.
    link_capacity: int = DEFAULT_CAPACITY
    #: Received router annotations are ignored; those of sent messages are removed.
    strip_in: bool = True
    strip_out: bool = True
    #: Of received router annotations only ingress and trace are kept; to and phase are ignored.
    only_traces: bool = False
    #: The log of messages; None for none (routing.md 4.8).
    log: MessageLog | None = None
    #: The tap that receives messages instead of the log, and logs them; or None.
    tap: MessageTap | None = None
    #: The connection's number and role in management.
    connection_number: int = 0
    role: str = "normal"
    #: The tenant whose addresses the links use; None for no tenant.
    tenant: Tenant | None = None
    #: The names of routed links end with the tenant's, so that no other tenant ever has them.
    names_tenant: bool = False
    #: The name that the peer logged in with, empty for none.
    user: str = ""
    #: The most unsettled deliveries of a receiver on one link.
    max_unsettled: int = 1 << 62
    #: The largest message accepted, in bytes; 0 for any.
    max_message_bytes: int = 0
    #: The check of messages; None for none.
    check: MessageCheck | None = None
    #: The gate that limits the credit of senders, or None.
    gate: Gate | None = None
    #: The trunk, on a connection between routers.
    trunk: Trunk | None = None

    @property
    def via_edge(self) -> bool:
        """True if the connection is between an edge router and its interior router."""
        return self.role == EDGE_ROLE

    @property
    def is_router(self) -> bool:
        """True if the peer is a router, with clients of its own."""
        return self.role in ROUTER_ROLES


def network_terms(connection_number: int, link_capacity: int) -> PeerTerms:
    """Return the terms of the network's own links between an edge router and its interior router: nothing is stripped.

    Neither a policy nor a message log applies to them.
    """
    return PeerTerms(link_capacity, False, False, connection_number=connection_number, role=EDGE_ROLE)
