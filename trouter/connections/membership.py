"""An admitted connection's part in the router: its tenant, its policy, its links, and its part in the network.

Between routers it is a trunk to a neighbour, the connection of an edge router, or an uplink (inter-router.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from trouter.backbone.backbone import Backbone
from trouter.backbone.uplinks import Uplinks
from trouter.core.edge.downlinks import open_edge_streams
from trouter.core.edge.peers import EdgePeer
from trouter.core.network import PRIORITIES
from trouter.core.router import Router
from trouter.core.streams import STREAMING_LINKS
from trouter.core.tenants import Tenant
from trouter.core.trunking import begin_links, open_streams
from trouter.engine.faults import Misuse
from trouter.engine.session import Session
from trouter.net.view import ConnectionView
from trouter.policy.connection_policy import ConnectionPolicy
from trouter.policy.router_policy import RouterPolicy
from trouter.wire.performatives import Error, Open

from .lifetime import Lifetime
from .sessions import Sessions, Step

NO_NEIGHBOURS = Error("amqp:not-allowed", "this router has no neighbours")


class Membership:
    """The part of one connection in the router, from its open to its end."""

    __slots__ = (
        "_backbone", "_is_uplink", "_lifetime", "_loss", "_router", "_router_policy", "_uplinks", "edge", "number",
        "policy", "sessions", "tenant", "trunk",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        tenant: Tenant | None,
        policy: ConnectionPolicy,
        lifetime: Lifetime,
        sessions: Sessions,
        edge: EdgePeer | None,
        router: Router,
        router_policy: RouterPolicy,
        backbone: Backbone | None,
        uplinks: Uplinks | None,
        *,
        is_uplink: bool,
    ) -> None:
        """Make the part of connection ``number``, of ``tenant``, with ``sessions`` under ``policy``.

        ``edge`` is the edge router at the other end. ``backbone`` is None on a router without neighbours, ``uplinks``
        on one that is no edge router.
        """
        self.number = number
        self.tenant = tenant
        self.policy = policy
        self.sessions = sessions
        #: The trunk of a connection between interior routers.
        self.trunk = sessions.terms.trunk
        self.edge = edge
        self._lifetime = lifetime
        self._router = router
        self._router_policy = router_policy
        self._backbone = backbone
        self._is_uplink = is_uplink
        self._uplinks = uplinks if is_uplink else None
        #: What is left to lose; None until the connection has ended.
        self._loss: Iterator[Step] | None = None

    @property
    def is_active(self) -> bool:
        """True unless it is a standby uplink."""
        return self._uplinks is None or self._uplinks.is_active(self.number)

    def register(self, connection: ConnectionView, remote: Open) -> None:
        """Add the connection to the network; if the router dialled, attach its links (inter-router.md 1.5)."""
        router, trunk, backbone = self._router, self.trunk, self._backbone
        capacity, begin, end = self.sessions.terms.link_capacity, self._begin_stream, self.sessions.end_own_session
        streams = STREAMING_LINKS in remote.offered_capabilities
        if self.edge is not None:
            router.edges.peers[self.number] = self.edge
        if streams and (self.edge is not None or self._is_uplink):
            open_edge_streams(router, self.number, capacity, begin, end, self.sessions.terms.log)
        if trunk is None:
            return
        if backbone is None:
            self._lifetime.end_connection(NO_NEIGHBOURS)
            return
        backbone.add_trunk(trunk, connection.note_in_use)
        if trunk.remote_container in router.network.siblings:
            router.note_sibling(leaves=False)
        if streams:
            open_streams(router, trunk, begin, end)
        if connection.login.outgoing:
            try:
                sessions = self.sessions.begin_own_sessions(1 + PRIORITIES)
            except Misuse as error:
                why = f"a router needs {1 + PRIORITIES} sessions: {error}"
                self._lifetime.end_connection(Error("amqp:not-allowed", why))
                return
            begin_links(router, trunk, sessions, capacity)

    def offer_uplink(self, connection: ConnectionView) -> None:
        """Add an open uplink; the first one becomes active, the others stand by."""
        if self._uplinks is not None:
            self._uplinks.add_uplink(connection)

    # --- the end

    def note_close(self) -> None:
        """Note that the peer has closed the connection, before its links are lost."""
        if self.trunk is not None and self.trunk.remote_container in self._router.network.siblings:
            self._router.note_sibling(leaves=True)

    def remaining_loss(self, connection: ConnectionView) -> Iterator[Step]:
        """Return the steps that lose all links of a connection that has ended; a standby uplink takes over.

        Each step is handed out once: whoever calls next gets those that are left.
        """
        if self._loss is None:
            self._loss = self._lose(connection)
        return self._loss

    def _lose(self, connection: ConnectionView) -> Iterator[Step]:
        uplinks = self._uplinks
        if uplinks is not None:
            yield partial(uplinks.remove_uplink, connection)
        yield from self.sessions.loss()
        if uplinks is not None:
            yield uplinks.activate_next

    def release_steps(self, connection: ConnectionView) -> Iterator[Step]:
        """Yield the steps that undo everything, in the inverse order."""
        router = self._router
        yield from self.remaining_loss(connection)
        if self.trunk is not None and self._backbone is not None:
            yield partial(self._backbone.remove_trunk, self.trunk)
        yield partial(router.network.stream_pools.pop, self.number, None)
        yield partial(router.edges.peers.pop, self.number, None)
        yield self._release_policy
        if self.tenant is not None:
            yield partial(router.table.tenants.leave_connection, self.tenant, self.number)

    def _release_policy(self) -> None:
        self._router_policy.release_connection(self.number, self.sessions.lost_resources)

    def _begin_stream(self) -> Session:
        return self.sessions.begin_own_sessions(1)[0]
