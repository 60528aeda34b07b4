"""A connection's part in the network: to a neighbour, to an edge router, or an uplink (inter-router.md)."""

from __future__ import annotations

from collections.abc import Callable

from trouter.backbone.backbone import announced_cost
from trouter.core.containers import Container
from trouter.core.edge.peers import EdgePeer
from trouter.core.messagelog import MessageLog
from trouter.core.network import PRIORITIES, Trunk
from trouter.core.streams import STREAMING_LINKS
from trouter.core.trunking import begin_links
from trouter.engine.connection import Connection
from trouter.engine.faults import Misuse
from trouter.engine.session import Session
from trouter.wire.performatives import Error, Open

from .peer_login import UNWATCHED, Watcher
from .sessions import Sessions
from .shared import PeerSettings, Services


class Membership:
    """One connection's part in the network; most have none, and then every call does nothing.

    turn_out closes the connection with an error; watcher is notified when a neighbour's first hello has come, or an
    uplink is in use.
    """

    __slots__ = (
        "_backbone", "_connection", "_outgoing", "_router", "_sessions", "_settings", "_uplinks", "_watcher", "edge",
        "is_uplink", "number", "trunk", "turn_out",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        outgoing: bool,
        connection: Connection,
        sessions: Sessions,
        settings: PeerSettings,
        services: Services,
        turn_out: Callable[[Error], None],
        watcher: Watcher,
    ) -> None:
        self.number = number
        self.turn_out = turn_out
        #: The trunk of a connection between routers, and the edge router at the other end.
        self.trunk: Trunk | None = None
        self.edge: EdgePeer | None = None
        #: It is the uplink of this edge router.
        self.is_uplink = settings.role == "edge" and outgoing
        self._outgoing = outgoing
        self._connection = connection
        self._sessions = sessions
        self._settings = settings
        self._router = services.hub.router
        self._backbone = services.backbone
        self._uplinks = services.uplinks
        self._watcher = watcher

    @property
    def is_active(self) -> bool:
        """True unless it is a stand-by uplink."""
        return self._uplinks is None or not self.is_uplink or self._uplinks.is_active(self.number)

    def come(self, remote: Open, user: str, message_log: MessageLog | None) -> None:
        """Set the trunk or edge router by the connection's role and the peer's open."""
        settings = self._settings
        if settings.role == "inter-router":
            cost = max(settings.cost, announced_cost(remote))
            self.trunk = Trunk(self.number, self._connection, settings.link_capacity, cost, remote.container_id)
            self.trunk.log = message_log
        elif settings.role == "edge" and not self._outgoing:
            self.edge = self._router.edges.peers[self.number] = EdgePeer(self.number, user)

    def join(self, remote: Open) -> None:
        """Add the connection to the network; if the router dialled, attach its links (inter-router.md 1.5)."""
        trunk = self.trunk
        streams = STREAMING_LINKS in remote.offered_capabilities
        if streams and (self.edge is not None or self.is_uplink):
            capacity, log = self._settings.link_capacity, self._sessions.terms.log
            self._router.open_edge_streams(self.number, capacity, self._begin_stream, self._sessions.end_own, log)
        if trunk is None:
            return
        if self._backbone is None:
            self.trunk = None
            self.turn_out(Error("amqp:not-allowed", "this router has no neighbours"))
            return
        self._backbone.enter(trunk, self._watcher.in_use)
        if streams:
            self._router.open_streams(trunk, self._begin_stream, self._sessions.end_own)
        if self._outgoing:
            try:
                sessions = self._sessions.begin_own(1 + PRIORITIES)
            except Misuse as error:
                self.turn_out(Error("amqp:not-allowed", f"a router needs {1 + PRIORITIES} sessions: {error}"))
                return
            begin_links(self._router, trunk, sessions, self._settings.link_capacity)

    def stand_by(self) -> None:
        """Add an open uplink; the first one becomes active."""
        if self.is_uplink and self._uplinks is not None:
            self._uplinks.enter(self)

    def lose_all_links(self) -> None:
        """Lose all links of an ended connection; a stand-by uplink takes over. A second call does nothing."""
        if self._uplinks is not None:
            self._uplinks.leave(self)
        self._sessions.lose_all_links()
        if self._uplinks is not None:
            self._uplinks.go_on()

    async def lose_by_and_by(self) -> None:
        """Do as ``lose_all_links``, with turns for other connections in between."""
        if self._uplinks is not None:
            self._uplinks.leave(self)
        await self._sessions.lose_by_and_by()
        if self._uplinks is not None:
            self._uplinks.go_on()

    def leave(self) -> None:
        """Drop the references between the network and the ended connection."""
        self._router.edges.peers.pop(self.number, None)
        self._router.close_edge_streams(self.number)
        if self.trunk is not None and self._backbone is not None:
            self._backbone.leave(self.trunk)
        self.turn_out = _is_gone
        self._watcher = UNWATCHED

    def begin_uplink(self, count: int) -> list[Session]:
        """See ``uplinks.UplinkOwner``."""
        return self._sessions.begin_own(count)

    def uplink_container(self) -> tuple[Container, int]:
        """See ``uplinks.UplinkOwner``."""
        return self._sessions.as_container(self._settings.given_name), self._settings.link_capacity

    def in_use(self) -> None:
        """See ``uplinks.UplinkOwner``."""
        self._watcher.in_use()

    def _begin_stream(self) -> Session:
        return self._sessions.begin_own(1)[0]


def _is_gone(_: Error) -> None:
    """Ignore the error: the connection has ended."""
