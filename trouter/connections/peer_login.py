"""The differences between accepted and dialled connections: the login, and the watcher of the connection."""

from __future__ import annotations

from typing import Final, Protocol

from trouter.engine.connection import Connection
from trouter.engine.events import ConnectionClosed, Event, LinkDetached
from trouter.engine.sasl import SaslClient, SaslServer
from trouter.hooks import Permissions

from .transport import Transport


class PeerLogin(Protocol):
    """The login of one connection, in either direction."""

    @property
    def outgoing(self) -> bool:
        """Return whether the router dialled: then it authenticates, else the peer does."""

    @property
    def sasl(self) -> SaslServer | SaslClient:
        """Return the engine's SASL layer."""

    @property
    def user(self) -> str:
        """Return the user of the connection; empty before the login and without one."""

    @property
    def mechanism(self) -> str:
        """Return the SASL mechanism; empty without one."""

    @property
    def tenant(self) -> str:
        """Return the tenant that the login names; empty for none."""

    @property
    def permissions(self) -> Permissions | None:
        """Return the permissions that the login gives; None if it gives none."""

    @property
    def expires_at_s(self) -> float:
        """Return when the credentials end, by trio's clock."""

    def attach(self, connection: Connection, transport: Transport) -> None:
        """Set connection and transport, once, before anything is read."""

    async def handle(self, event: Event) -> bool:
        """Process ``event``; return whether it was one of the login."""

    def opens(self) -> None:
        """Take the user of a peer without login from its certificate, at its open."""

    def is_good(self) -> bool:
        """Return whether the credentials are still valid."""

    def close(self) -> None:
        """End the login, whether it succeeded or not; a second call does nothing."""


class Watcher(Protocol):
    """The receiver of events of a dialled connection."""

    def opened(self, line: str) -> None:
        """Note that the opens are exchanged and the connection is admitted; ``line`` is the log line."""

    def in_use(self) -> None:
        """Note that the other router serves the connection: a neighbour's first hello, or an uplink's links, came."""

    def closed(self, event: ConnectionClosed) -> None:
        """Note that the peer, or a fault, closed the connection."""

    def detached(self, event: LinkDetached, *, control: bool) -> None:
        """Note that the peer detached a link; ``control`` if it is the control link between routers."""


class _Nothing:
    """Ignores all events, for accepted connections."""

    def opened(self, line: str) -> None: ...

    def in_use(self) -> None: ...

    def closed(self, event: ConnectionClosed) -> None: ...

    def detached(self, event: LinkDetached, *, control: bool) -> None: ...


UNWATCHED: Final[Watcher] = _Nothing()
