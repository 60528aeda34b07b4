"""What a router gets from the system if it is one process, and from the parent if it is one of several workers.

These are its listening sockets and connections, its part of the configuration, and the way to the other workers.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from trouter.config import Configuration, ListenerEntity

from .dialing import Endpoint, connect
from .parts import Key
from .sockets import open_for
from .tallies import Tallies
from .workers import News, Workers


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
        """Return why the configuration cannot be changed here; empty if it can, and the other workers follow."""

    @property
    def behind(self) -> Mapping[int, str]:
        """The workers that do not have the configuration in force, by number, and why."""

    def part_of(self, whole: Configuration) -> Configuration:
        """Return this process's part of the configuration of the router."""

    async def publish(self, whole: Configuration, *, reloaded: bool = False) -> None:
        """Have the other workers, and those to come, take over the configuration that is in force here.

        ``reloaded``: the file was read again. Workers that do not take it over in time are in ``behind``.
        """

    async def open_for(self, key: Key, entity: ListenerEntity, leaving: Sequence[socket.socket]) -> list[socket.socket]:
        """Return the sockets that ``entity`` listens on; see ``sockets.open_for``."""

    async def connect(self, endpoint: Endpoint, family_name: str | None) -> socket.socket:
        """Return a connected socket; see ``dialing.connect``."""

    def notify_siblings(self, news: News) -> None:
        """Notify the other workers; one that has many messages waiting does not get it."""

    def note_ready(self) -> None:
        """Note that every listener is open."""

    def ask_for_reload(self) -> None:
        """Have the first worker read the configuration again, if this one cannot change it."""

    def reopen_logs(self) -> None:
        """Have the other workers open their log files again."""


class SingleProcess:
    """A process that is the whole router: the system has its sockets."""

    siblings: frozenset[str] = frozenset()
    workers = None
    tallies: Tallies | None = None
    why_fixed = ""
    behind: Mapping[int, str] = MappingProxyType({})

    async def open_for(self, _: Key, entity: ListenerEntity, leaving: Sequence[socket.socket]) -> list[socket.socket]:
        """Open the sockets here."""
        return await open_for(entity, leaving)

    async def connect(self, endpoint: Endpoint, family_name: str | None) -> socket.socket:
        """Dial from here."""
        return await connect(endpoint, family_name)

    def part_of(self, whole: Configuration) -> Configuration:
        """Return the whole: there are no other parts."""
        return whole

    async def publish(self, _: Configuration, *, reloaded: bool = False) -> None:
        """Do nothing: there are no other workers."""

    def notify_siblings(self, news: News) -> None:
        """Do nothing: there are no other workers."""

    def note_ready(self) -> None:
        """Do nothing: this router has no parent that waits until it is ready."""

    def ask_for_reload(self) -> None:
        """Do nothing: this process itself reloads."""

    def reopen_logs(self) -> None:
        """Do nothing: there are no other workers."""
