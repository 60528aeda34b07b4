"""What differs between accepted and dialled connections: how the login goes, and who is told of the connection."""

from __future__ import annotations

from typing import Final, Protocol

from trouter.engine.connection import Connection
from trouter.engine.events import ConnectionClosed, Event, LinkDetached
from trouter.engine.sasl import SaslClient, SaslServer
from trouter.hooks import Permissions

from .transport import Transport


class PeerLogin(Protocol):
    """The login of one connection, at either end of it."""

    @property
    def outgoing(self) -> bool:
        """Return whether the router dialled: then it logs in, else the peer does."""

    @property
    def sasl(self) -> SaslServer | SaslClient:
        """Return the engine's side of it."""

    @property
    def user(self) -> str:
        """Return the user of the connection, empty before the login and without one."""

    @property
    def mechanism(self) -> str:
        """Return the SASL mechanism, empty without."""

    @property
    def tenant(self) -> str:
        """Return the tenant that the login says the user belongs to, empty for none."""

    @property
    def permissions(self) -> Permissions | None:
        """Return what the login says that the user may do; None where it does not say."""

    @property
    def expires_at_s(self) -> float:
        """Return when the credentials end, by the clock of the event loop."""

    def attach(self, connection: Connection, transport: Transport) -> None:
        """Use these from now on; called once, before anything is read."""

    async def handle(self, event: Event) -> bool:
        """Take the step that ``event`` asks for, and return whether it was one of the login."""

    def opens(self) -> None:
        """Name a peer that did not log in, and whose open has come, after its certificate."""

    def is_good(self) -> bool:
        """Return whether the credentials are good still."""

    def close(self) -> None:
        """End the login: the peer is in, or will never be; a second call does nothing."""


class Watcher(Protocol):
    """What is told of a connection that was dialled for a purpose."""

    def opened(self, line: str) -> None:
        """Note that the opens are exchanged and the policy has admitted the connection; ``line`` is for the log."""

    def router_heard(self) -> None:
        """Note that the neighbour's first hello has come."""

    def closed(self, event: ConnectionClosed) -> None:
        """Note that the peer, or a fault, has closed the connection."""

    def detached(self, event: LinkDetached, *, control: bool) -> None:
        """Note that the peer has detached a link; ``control``: the one that carries news of the network."""


class _Nothing:
    """Watches nothing: what an accepted connection has."""

    def opened(self, line: str) -> None: ...

    def router_heard(self) -> None: ...

    def closed(self, event: ConnectionClosed) -> None: ...

    def detached(self, event: LinkDetached, *, control: bool) -> None: ...


UNWATCHED: Final[Watcher] = _Nothing()
