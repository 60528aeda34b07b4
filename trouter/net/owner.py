"""What the engine and the core find at the other side of a connection: the object that serves it."""

from __future__ import annotations

from typing import Any, Protocol

from trouter.core.containers import DetachReason
from trouter.engine.link_base import Link


class ConnectionOwner(Protocol):
    """Serves one connection; ``engine.connection.Connection.owner`` is it, or None once the connection is gone."""

    @property
    def number(self) -> int:
        """Return the number in ``[C<n>]``."""

    def about(self) -> dict[str, Any]:
        """Return what every record about the connection says."""

    def write_nowait(self) -> None:
        """Write what stands in the output; what the socket does not take now goes when it can."""

    def link_ended(self, link: Link, reason: DetachReason) -> None:
        """Tell the peer that the router ends a link of the connection's for a reason of its own."""

    def idle(self) -> None:
        """End the connection: the engine gave it up for its silence."""


def owner_of(link: Any) -> ConnectionOwner | None:
    """Return what serves the connection of ``link``, a link of the engine; None once it is gone."""
    owner: ConnectionOwner | None = link.session.connection.owner
    return owner
