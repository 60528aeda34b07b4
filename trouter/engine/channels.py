"""The sessions of a connection by channel (AMQP 1.0 part 2, 2.5.1).

Each side has its own channels, for its own frames. A channel of ours is free again once both sides have ended its
session and the holder has dropped it.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from .faults import Misuse
from .limits import EngineLimits
from .ports import ConnectionPort
from .session import Session
from .states import SessionState

if TYPE_CHECKING:
    from cython import Py_ssize_t

#: The free channels of every connection before its first: replaced, and never changed.
_NO_CHANNELS: list[int] = []


class Channels:
    """The sessions of one connection that are not ended on both sides.

    ``last_session`` is the session of the last frame, as a cache: None whenever a channel loses its session.
    """

    __slots__ = ("by_channel", "by_remote_channel", "last_session", "channel_max", "_spare_channels", "_turn")

    def __init__(self, channel_max: Py_ssize_t) -> None:
        #: The highest channel that a session of ours may have; the peer's open says it.
        self.channel_max = channel_max
        self.by_channel: dict[int, Session] = {}
        self.by_remote_channel: dict[int, Session] = {}
        self.last_session: Session | None = None
        self._spare_channels: list[int] = _NO_CHANNELS
        #: Counts how often sessions had to wait for room in the output.
        self._turn: Py_ssize_t = 0

    def list_sessions(self) -> list[Session]:
        """Return every session that is not ended on both sides."""
        return list(self.by_channel.values())

    def add_session(self, connection: ConnectionPort, limits: EngineLimits, sessions_due: list[Session]) -> Session:
        """Return a new session on a free channel of ours; Misuse if the peer allows no more."""
        channel = self._spare_channels[-1] if self._spare_channels else len(self.by_channel)
        if channel > self.channel_max:
            raise Misuse(f"the peer allows no channel above {self.channel_max}")
        if self._spare_channels:
            self._spare_channels.pop()
        session = Session(connection, channel, limits, sessions_due)
        self.by_channel[channel] = session
        return session

    def count_free(self) -> int:
        """Return how many more sessions of ours the peer allows."""
        return self.channel_max + 1 - len(self.by_channel)

    def map_remote_channel(self, channel: int, session: Session) -> None:
        """Note that the peer has begun a session, or answered our begin, on this channel of its."""
        session.remote_channel = channel
        self.by_remote_channel[channel] = session

    def release_remote_channel(self, channel: int) -> None:
        """Free this channel of the peer, which has ended its session."""
        del self.by_remote_channel[channel]
        self.last_session = None

    def forget_ended(self, session: Session) -> bool:
        """Forget a session that both sides have ended, unless its holder has yet to drop it; return whether it was."""
        if session.state not in _NOT_OPEN or session.reported or self.by_channel.get(session.channel) is not session:
            return False
        del self.by_channel[session.channel]
        if not self._spare_channels:
            self._spare_channels = []
        self._spare_channels.append(session.channel)
        return True

    def forget_sessions(self, count: int) -> bool:
        """Forget up to ``count`` sessions, whose links the holder is done with; return whether more are left."""
        sessions = self.by_channel
        while sessions and count > 0:
            session = sessions.popitem()[1]
            self.by_remote_channel.pop(session.remote_channel, None)  # it would keep the session
            session.drop_references()
            count -= 1
        return bool(sessions)

    def silence_sessions(self) -> None:
        """Stop all sessions; the holder still clears away their links."""
        self.by_remote_channel.clear()
        self.last_session = None
        for session in self.by_channel.values():
            session.stop_writing()

    def resume_sessions(self) -> None:
        """Resume the links that wait for room in the output. Sessions of the same urgency take turns."""
        waiting = [session for session in self.by_channel.values() if session.waiting_links]
        if len(waiting) > 1:
            self._turn = (self._turn + 1) % len(waiting)
            waiting = waiting[self._turn :] + waiting[: self._turn]
            waiting.sort(key=_URGENCY, reverse=True)
        for session in waiting:
            session.resume_links()


#: A session in these states is over, or was never begun.
_NOT_OPEN = frozenset((SessionState.UNMAPPED, SessionState.END))
_URGENCY = attrgetter("urgency")
