"""What the parts of the routing core need of their router; see ``Router``.

The router knows its parts, and each part knows only this, so no part imports the router. A part that needs more extends
this port in its own module.
"""

from __future__ import annotations

from typing import Protocol

from trouter.engine.link_base import Link
from trouter.engine.ports import LinkSink

from .containers import Container, DetachReason
from .inside import InsideTraffic
from .links import LinkHome
from .pending_detaches import PendingDetaches
from .routes import Routes


class UplinkPort(Protocol):
    """The uplink of an edge router; see ``Uplink``."""

    @property
    def container(self) -> Container:
        """Return the connection as a container for routed links."""


class RouterPort(LinkHome, Protocol):
    """The state that all parts share, and the events of links."""

    @property
    def routes(self) -> Routes:
        """Return all link routes."""

    @property
    def inside(self) -> InsideTraffic:
        """Return what sends the router's own messages."""

    @property
    def pending_detaches(self) -> PendingDetaches:
        """Return the routed links with one end detached and the other not yet."""

    @property
    def uplink(self) -> UplinkPort | None:
        """Return the uplink of an edge router; None without one."""

    def next_identity(self) -> int:
        """Return a number that no link, address or route of the router had before."""

    def add_endpoint(self, endpoint: LinkSink, connection_number: int) -> None:
        """Add a link to the routing."""

    def end_link(self, link: Link, reason: DetachReason) -> None:
        """End a link because another one ended, or because it is no longer needed."""

    def detach_link(self, link: Link, closed: bool) -> None:
        """End a link in order: settle its deliveries, detach it."""
