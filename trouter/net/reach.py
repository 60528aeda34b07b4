"""How a router gets its listening sockets and its connections: from the system, or as one of several workers."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from trouter.config import ListenerEntity

from .dialing import Endpoint, connect
from .parts import Key
from .sockets import open_for
from .tallies import Tallies

#: What one worker tells the others.
News = Mapping[str, object]


class Workers(Protocol):
    """The workers of this router, as one of them sees them: what it asks the others, and what they ask it."""

    #: The number of this worker, from 1.
    number: int
    #: The ids of all workers by their numbers.
    ids: Mapping[int, str]

    async def ask(self, number: int, what: str, request: bytes = b"") -> bytes:
        """Return the answer of another worker; OSError with a text if it does not answer in time."""

    async def answer_calls(self, answers: Mapping[str, Callable[[bytes], Awaitable[bytes]]]) -> None:
        """Answer the calls of other workers, each by the function for what it asks; until cancelled."""

    def reload_others(self) -> None:
        """Have the other workers read the configuration, which is in force in this one, the first."""


class Reach(Protocol):
    """What differs between a process that is a router and one that is a worker of it."""

    @property
    def siblings(self) -> frozenset[str]:
        """The ids of the other workers; empty for a router of one process."""

    @property
    def workers(self) -> Workers | None:
        """The workers of the router; None for a router of one process."""

    @property
    def tallies(self) -> Tallies | None:
        """The counts that it shares with the other workers; None for a router of one process."""

    @property
    def why_fixed(self) -> str:
        """Return why management cannot change the configuration; empty if it can."""

    async def open_for(self, key: Key, entity: ListenerEntity, leaving: Sequence[socket.socket]) -> list[socket.socket]:
        """Return the sockets that ``entity`` listens on; see ``sockets.open_for``."""

    async def connect(self, endpoint: Endpoint, family_name: str | None) -> socket.socket:
        """Return a connected socket; see ``dialing.connect``."""

    async def run(self, hear: Callable[[News], None]) -> None:
        """Do what the parent process asks for, while the router runs; call ``hear`` with what other workers tell."""

    def tell_siblings(self, news: News) -> None:
        """Tell the other workers; one that has many messages waiting does not hear it."""

    def note_ready(self) -> None:
        """Note that every listener is open."""

    def note_reloaded(self, *, changed: bool) -> None:
        """Note that the configuration was read again, and whether it is in force."""


class Alone:
    """A process that is the whole router: the system has its sockets."""

    siblings: frozenset[str] = frozenset()
    workers = None
    tallies: Tallies | None = None
    why_fixed = ""

    async def open_for(self, _: Key, entity: ListenerEntity, leaving: Sequence[socket.socket]) -> list[socket.socket]:
        """Open the sockets here."""
        return await open_for(entity, leaving)

    async def connect(self, endpoint: Endpoint, family_name: str | None) -> socket.socket:
        """Dial from here."""
        return await connect(endpoint, family_name)

    async def run(self, _: Callable[[News], None]) -> None:
        """Do nothing: there is no parent."""

    def tell_siblings(self, news: News) -> None:
        """Do nothing: there are no other workers."""

    def note_ready(self) -> None:
        """Do nothing: this router has no parent that waits until it is ready."""

    def note_reloaded(self, *, changed: bool) -> None:
        """Do nothing: this router has no parent that waits for the reload."""
