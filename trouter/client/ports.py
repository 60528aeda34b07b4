"""What links and sessions call above them: so the imports of this package go one way, from the connection down."""

from __future__ import annotations

from typing import Protocol

import trio

from trouter.engine.session import Session as EngineSession

from .ends import End
from .errors import ClientError


class Departing(Protocol):
    """A session or a link whose peer is to say that it has ended too."""

    _changed: trio.lowlevel.ParkingLot

    def _gone(self) -> bool:
        """Return whether the peer has no more to say on it."""


class ConnectionPort(Protocol):
    """A connection, as its sessions and links see it."""

    _sessions: set[SessionPort]

    def _flush(self) -> None:
        """Write the pending octets now."""

    def _flush_soon(self) -> None:
        """Write the pending octets when the task at hand next waits."""

    def _flush_if_touched(self) -> None:
        """Write the pending octets if the engine has any."""

    async def _until_gone(self, end: Departing) -> None:
        """Wait until the peer's last word on ``end`` has come, or no more can come."""

    async def _let_others_run(self) -> None:
        """Give other tasks a turn from time to time; never raises."""


class SessionPort(Protocol):
    """A session, as its connection and its links see it."""

    connection: ConnectionPort
    _session: EngineSession
    _links: set[End]

    async def aclose(self) -> None:
        """End the session with its links, and wait until the peer has done so too."""

    def _end(self, failure: ClientError | None) -> None:
        """End the session and its links because of ``failure``, or by our own wish."""
