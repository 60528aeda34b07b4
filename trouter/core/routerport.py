"""What the parts of the routing core ask of the router that they belong to; see ``Router``.

The router knows all of its parts, and each part only this: so none of them imports the router. A part that asks for
more says so beside itself, by a port that extends this one.
"""

from __future__ import annotations

from typing import Protocol

from trouter.engine.link_base import Link

from .containers import Container, DetachReason
from .counters import AddressCounters
from .egress import Egress
from .farewells import Farewells
from .ingress import Ingress
from .network import Network
from .ports import Pulse
from .routes import Routes
from .table import AddressTable
from .tenants import Tenant


class UplinkPort(Protocol):
    """The connection that an edge router goes by; see ``Uplink``."""

    @property
    def container(self) -> Container:
        """Return the connection as one on which routed links go on."""


class RouterPort(Protocol):
    """The state that all parts share, and what links do when they come and go."""

    @property
    def table(self) -> AddressTable:
        """Return every address that the router knows."""

    @property
    def pulse(self) -> Pulse:
        """Return the time, and what all links share."""

    @property
    def totals(self) -> AddressCounters:
        """Return what is counted of the messages of all addresses."""

    @property
    def network(self) -> Network:
        """Return the other routers."""

    @property
    def routes(self) -> Routes:
        """Return all link routes."""

    @property
    def farewells(self) -> Farewells:
        """Routed links of which one end is detached and the other is yet to answer."""

    @property
    def uplink(self) -> UplinkPort | None:
        """Return the way to other routers, of an edge router that has one; else None."""

    def next_identity(self) -> int:
        """Return a number that no link, address or route of the router had before."""

    def enter(self, endpoint: Ingress | Egress, connection_number: int) -> None:
        """Have a link take part in the routing from here on."""

    def end(self, link: Link, reason: DetachReason) -> None:
        """End a link because another one did, or because there is no use for it any more."""

    def detach(self, link: Link, closed: bool) -> None:
        """End a link in order: settle what it leaves behind, detach it."""

    def send(self, address: str, message: bytes, tenant: Tenant | None = None) -> int:
        """Send a (pre-settled) message from inside the router; return how many receivers it went to."""

    def send_on(self, egress: Egress, message: bytes) -> None:
        """Send a (pre-settled) message from inside the router on one link, whatever its address."""
