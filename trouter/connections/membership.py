"""An admitted connection's part in the router: its tenant, its policy, its links, and its part in the network.

Between routers it is a trunk to a neighbour, the connection of an edge router, or an uplink (inter-router.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from trouter.backbone.backbone import announced_cost
from trouter.core.edge.downlinks import open_edge_streams
from trouter.core.edge.peers import EdgePeer
from trouter.core.messagelog import MessageLog
from trouter.core.network import PRIORITIES, Trunk
from trouter.core.streams import STREAMING_LINKS
from trouter.core.tenants import Tenant
from trouter.core.terms import ROUTER_ROLES, PeerTerms
from trouter.core.trunking import begin_links, open_streams
from trouter.engine.connection import Connection
from trouter.engine.faults import Misuse
from trouter.engine.session import Session
from trouter.hooks import PeerFacts
from trouter.net.shares import ProcessorShare
from trouter.net.view import ConnectionView
from trouter.policy.connection_policy import ConnectionPolicy
from trouter.telemetry.user_keys import user_key
from trouter.wire.performatives import Error, Open

from .lifetime import Lifetime
from .sessions import Sessions, Step
from .shared import PeerSettings, Services

NO_NEIGHBOURS = Error("amqp:not-allowed", "this router has no neighbours")


class Membership:
    """The part of one connection in the router, from its open to its end."""

    __slots__ = (
        "_engine", "_lifetime", "_loss", "_services", "_settings", "edge", "is_uplink", "number", "policy", "sessions",
        "tenant", "trunk",
    )  # fmt: skip

    def __init__(
        self,
        facts: PeerFacts,
        settings: PeerSettings,
        services: Services,
        engine: Connection,
        lifetime: Lifetime,
        remote: Open,
        user: str,
        tenant: Tenant | None,
        policy: ConnectionPolicy,
        message_log: MessageLog | None,
        share: ProcessorShare,
        *,
        outgoing: bool,
    ) -> None:
        """Make the part of a connection whose peer, ``user``, sent ``remote`` and may open under ``policy``."""
        self.number = facts.connection_id
        self.tenant = tenant
        self.policy = policy
        self._settings = settings
        self._services = services
        self._engine = engine
        self._lifetime = lifetime
        role, strips = settings.role, services.plugins.annotation_filter(facts.listener)
        #: The trunk of a connection between interior routers, and the edge router at the other end.
        self.trunk: Trunk | None = None
        self.edge: EdgePeer | None = None
        #: It is the uplink of this edge router.
        self.is_uplink = role == "edge" and outgoing
        if role == "inter-router":
            cost = max(settings.cost, announced_cost(remote))
            self.trunk = Trunk(self.number, engine, settings.link_capacity, cost, remote.container_id, message_log)
        elif role == "edge" and not outgoing:
            self.edge = EdgePeer(self.number, user)
        terms = PeerTerms(
            connection_number=self.number,
            link_capacity=settings.link_capacity,
            max_unsettled=settings.max_unsettled,
            strip_in=strips.strip_in,
            only_traces=role not in ROUTER_ROLES,
            strip_out=strips.strip_out,
            log=message_log,
            tenant=tenant,
            trunk=self.trunk,
            role=role,
        )
        #: What is left to lose; None until the connection has ended.
        self._loss: Iterator[Step] | None = None
        told_as = None if role in ROUTER_ROLES else user_key(policy.admission.vhost, user, facts.remote_host)
        self.sessions = Sessions(engine, lifetime, services, policy, terms, settings.max_links, share, told_as)

    @property
    def is_active(self) -> bool:
        """True unless it is a standby uplink."""
        uplinks = self._services.uplinks
        return uplinks is None or not self.is_uplink or uplinks.is_active(self.number)

    def register(self, connection: ConnectionView, remote: Open) -> None:
        """Add the connection to the network; if the router dialled, attach its links (inter-router.md 1.5)."""
        router, trunk, backbone = self._services.hub.router, self.trunk, self._services.backbone
        capacity, begin, end = self._settings.link_capacity, self._begin_stream, self.sessions.end_own_session
        streams = STREAMING_LINKS in remote.offered_capabilities
        if self.edge is not None:
            router.edges.peers[self.number] = self.edge
        if streams and (self.edge is not None or self.is_uplink):
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
        if connection.outgoing:
            try:
                sessions = self.sessions.begin_own_sessions(1 + PRIORITIES)
            except Misuse as error:
                why = f"a router needs {1 + PRIORITIES} sessions: {error}"
                self._lifetime.end_connection(Error("amqp:not-allowed", why))
                return
            begin_links(router, trunk, sessions, capacity)

    def offer_uplink(self, connection: ConnectionView) -> None:
        """Add an open uplink; the first one becomes active, the others stand by."""
        if self.is_uplink and self._services.uplinks is not None:
            self._services.uplinks.add_uplink(connection)

    # --- the end

    def note_close(self) -> None:
        """Note that the peer has closed the connection, before its links are lost."""
        router = self._services.hub.router
        if self.trunk is not None and self.trunk.remote_container in router.network.siblings:
            router.note_sibling(leaves=True)

    def remaining_loss(self, connection: ConnectionView) -> Iterator[Step]:
        """Return the steps that lose all links of a connection that has ended; a standby uplink takes over.

        Each step is handed out once: whoever calls next gets those that are left.
        """
        if self._loss is None:
            self._loss = self._lose(connection)
        return self._loss

    def _lose(self, connection: ConnectionView) -> Iterator[Step]:
        uplinks = self._services.uplinks if self.is_uplink else None
        if uplinks is not None:
            yield partial(uplinks.remove_uplink, connection)
        yield from self.sessions.loss()
        if uplinks is not None:
            yield uplinks.activate_next

    def release_steps(self, connection: ConnectionView) -> Iterator[Step]:
        """Yield the steps that undo everything, in the inverse order."""
        services, router = self._services, self._services.hub.router
        yield from self.remaining_loss(connection)
        if self.trunk is not None and services.backbone is not None:
            yield partial(services.backbone.remove_trunk, self.trunk)
        yield partial(router.network.stream_pools.pop, self.number, None)
        yield partial(router.edges.peers.pop, self.number, None)
        yield self._release_policy
        if self.tenant is not None:
            yield partial(router.table.tenants.leave_connection, self.tenant, self.number)

    def _release_policy(self) -> None:
        self._services.policy.release_connection(self.number, self.sessions.lost_resources)

    def _begin_stream(self) -> Session:
        return self.sessions.begin_own_sessions(1)[0]
