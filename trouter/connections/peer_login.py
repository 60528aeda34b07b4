"""The login of a connection, which differs between accepted and dialled ones."""

from __future__ import annotations

from typing import Protocol

from trouter.engine.events import Event
from trouter.engine.sasl import SaslClient, SaslServer
from trouter.hooks import Permissions
from trouter.net.view import LoginView


class LoginFailed(Exception):
    """The router cannot log in at the peer; the text says why."""


class PeerLogin(LoginView, Protocol):
    """The login of one connection, in either direction, as the connection uses it."""

    @property
    def sasl(self) -> SaslServer | SaslClient:
        """Return the engine's SASL layer, until the login ends."""

    @property
    def refused(self) -> bool:
        """Return whether SASL has refused the peer, once the login has ended."""

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

    def close(self) -> None:
        """End the login, whether it succeeded or not; a second call does nothing."""
