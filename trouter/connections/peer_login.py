"""The login of a connection, which differs between accepted and dialled ones."""

from __future__ import annotations

from typing import Protocol

from trouter.engine.events import Event
from trouter.engine.sasl import SaslClient, SaslServer
from trouter.hooks import Permissions


class LoginFailed(Exception):
    """The router cannot log in at the peer; the text says why."""


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

    async def take_step(self, event: Event) -> bool:
        """Answer an event of the login; return whether more input may be read. LoginFailed."""

    def note_open(self) -> None:
        """Take the user of a peer without login from its certificate, at its open."""

    def is_good(self) -> bool:
        """Return whether the credentials are still valid."""

    def close(self) -> None:
        """End the login, whether it succeeded or not; a second call does nothing."""
