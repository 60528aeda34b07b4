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
        """Whether the router dialled: then it logs in, else the peer does."""

    @property
    def sasl(self) -> SaslServer | SaslClient:
        """The engine's side of it."""

    @property
    def user(self) -> str:
        """The user of the connection, empty before the login and without one."""

    @property
    def mechanism(self) -> str:
        """The SASL mechanism, empty without."""

    @property
    def tenant(self) -> str:
        """The tenant that the login says the user belongs to, empty for none."""

    @property
    def permissions(self) -> Permissions | None:
        """What the login says that the user may do; None where it does not say."""

    @property
    def expires_at_s(self) -> float:
        """When the credentials end, by the clock of the event loop."""

    def attach(self, connection: Connection, transport: Transport) -> None:
        """Use these from now on; called once, before anything is read."""

    async def handle(self, event: Event) -> bool:
        """Take the step that ``event`` asks for, and return whether it was one of the login."""

    def opens(self) -> None:
        """The peer's open has come: a peer that did not log in is named after its certificate."""

    def is_good(self) -> bool:
        """Whether the credentials are good still."""

    def close(self) -> None:
        """The peer is in, or will never be; a second call does nothing."""


class Watcher(Protocol):
    """What is told of a connection that was dialled for a purpose."""

    def opened(self, line: str) -> None:
        """The opens are exchanged, and the policy has admitted the connection: so says ``line`` of the log."""

    def router_heard(self) -> None:
        """A neighbour's first hello has come."""

    def closed(self, event: ConnectionClosed) -> None:
        """The peer has closed the connection, or a fault has."""

    def detached(self, event: LinkDetached, *, control: bool) -> None:
        """The peer has detached a link; ``control``: the one that routers tell each other of the network on."""


class _Nothing:
    """Watches nothing: what an accepted connection has."""

    def opened(self, line: str) -> None: ...

    def router_heard(self) -> None: ...

    def closed(self, event: ConnectionClosed) -> None: ...

    def detached(self, event: LinkDetached, *, control: bool) -> None: ...


UNWATCHED: Final[Watcher] = _Nothing()
