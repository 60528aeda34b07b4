"""The interface of the object that serves a connection, for engine and core."""

from __future__ import annotations

from typing import Any, Protocol

from trouter.core.containers import DetachReason
from trouter.engine.link_base import Link


class ConnectionOwner(Protocol):
    """Serves one connection: ``engine.connection.Connection.owner``, which is None once the connection has ended."""

    @property
    def number(self) -> int:
        """Return the number in ``[C<n>]``."""

    def about(self) -> dict[str, Any]:
        """Return the fields common to all records about the connection."""

    def write_nowait(self) -> None:
        """Write the output; the rest waits until the socket takes more."""

    def link_ended(self, link: Link, reason: DetachReason) -> None:
        """Send the peer the detach of a link that the router ends by itself."""


def owner_of(link: Any) -> ConnectionOwner | None:
    """Return the owner of the connection of ``link``, a link of the engine; None once it has ended."""
    owner: ConnectionOwner | None = link.session.connection.owner
    return owner
