"""Sessions: their links share windows and end together (AMQP 1.0 part 2, 2.5)."""

from __future__ import annotations

from typing import Final

import trio

from trouter.engine.faults import PeerFault
from trouter.engine.ports import SessionHolder
from trouter.engine.session import Session as EngineSession
from trouter.engine.states import SessionState
from trouter.wire.performatives import Error

from .closable import Closable
from .errors import ClientError, SessionEnded
from .opening import LinkOpener
from .ports import ClientConnectionPort

_NOT_OPEN: Final = frozenset({SessionState.UNMAPPED, SessionState.END})


class Session(Closable, LinkOpener, SessionHolder):
    """A session of ours; made by ``Connection.session``. A large transfer of one link delays the others."""

    def __init__(self, connection: ClientConnectionPort, session: EngineSession) -> None:
        super().__init__("session")
        self.connection: ClientConnectionPort = connection
        self._session = session
        self._links: set[Closable] = set()
        session.holder = self

    async def aclose(self) -> None:
        """End the session with its links, and wait until the peer has ended it too."""
        if self.usable:
            self._end(None)
            self._session.end()
            self.connection._flush()
        await self.connection._wait_until_over(self)
        await trio.lowlevel.checkpoint()

    async def _session_for_links(self) -> Session:
        await self._wait_until(lambda: self._session.mapped)
        return self

    async def _session_for_stream(self) -> tuple[Session, bool]:
        return await self._session_for_links(), False

    def _end(self, failure: ClientError | None) -> None:
        for link in list(self._links):
            link._end(failure)
        self._links.clear()
        self.connection._sessions.discard(self)
        super()._end(failure)

    def _is_over(self) -> bool:
        """Return whether the peer has ended this session too, or never heard of it."""
        return self._session.state in _NOT_OPEN

    def on_begun(self) -> None:
        """Wake the tasks that wait for the peer's begin."""
        self._changed.unpark_all()

    def on_ended(self, error: Error | None, fault: PeerFault | None) -> None:
        """End the session, because the peer or a fault of the peer ended it."""
        if fault is None:
            self._end(SessionEnded.from_peer(error, "the peer ended the session"))
            self._session.end()
        else:
            self._end(SessionEnded(fault.condition, fault.text))
