"""What links and sessions call on the objects above them, so that imports go one way, from the connection down."""

from __future__ import annotations

from typing import Protocol

import trio

from trouter.engine.session import Session as EngineSession

from .closable import Closable
from .errors import ClientError


class Departing(Protocol):
    """A session or a link that waits for the peer to end it too."""

    _changed: trio.lowlevel.ParkingLot

    def _is_over(self) -> bool:
        """Return whether the peer has ended it, or cannot any more."""


class ClientConnectionPort(Protocol):
    """What sessions and links need of their connection."""

    _sessions: set[ClientSessionPort]

    def _flush(self) -> None:
        """Write the pending bytes now."""

    def _flush_soon(self) -> None:
        """Write the pending bytes when the current task next waits."""

    def _flush_if_touched(self) -> None:
        """Write the pending bytes if the engine has any."""

    async def _wait_until_over(self, end: Departing) -> None:
        """Wait until the peer has ended ``end`` too, or cannot any more."""

    async def _let_others_run(self) -> None:
        """Give other tasks a turn after many calls that did not wait; never raises."""


class ClientSessionPort(Protocol):
    """What the connection and the links need of a session."""

    connection: ClientConnectionPort
    _session: EngineSession
    _links: set[Closable]

    async def aclose(self) -> None:
        """End the session with its links, and wait until the peer has ended it too."""

    def _end(self, failure: ClientError | None) -> None:
        """End the session and its links because of ``failure``, or by our own wish if None."""
