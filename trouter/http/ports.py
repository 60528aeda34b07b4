"""What the HTTP room needs of the program that it serves pages for; the wiring of the process implements it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import trio

from trouter.config import ListenerEntity
from trouter.net.turns import Turn


@dataclass(frozen=True, slots=True)
class Secured:
    """A stream to a client, and the router's object for the TLS below it; None without TLS."""

    stream: trio.abc.HalfCloseableStream
    below: object | None


class Site(Protocol):
    """The program behind the HTTP listeners: the router."""

    async def metrics_of_workers(self, tenant: str) -> Mapping[int, bytes | None]:
        """Return the texts of the other workers of a router that has several, by their numbers.

        None stands for the text of a worker that does not answer. ``tenant`` is that of ``exposition``.
        """
        ...

    def exposition(self, tenant: str, others: Mapping[int, bytes | None]) -> bytes:
        """Return the current figures as Prometheus text: all, or those of the named ``tenant``, known or not.

        ``others`` are the texts of the other workers; the text has those too.
        """
        ...

    async def healthy(self) -> bool:
        """Return whether it works; a router sends a message through its core."""
        ...

    def ready(self) -> bool:
        """Return whether it serves clients; a router's listeners are open, and it is not about to stop."""
        ...

    def reasons(self) -> Sequence[str]:
        """Return the reasons why it is not ready, a line each; empty if it is."""
        ...

    async def reasons_of_workers(self) -> Sequence[str]:
        """Return the reasons why other workers are not ready, a line each; empty if they are, or there are none."""
        ...

    def refuses_clients(self, entity: ListenerEntity) -> str:
        """Return why no new client of AMQP may come through a listener for now; empty if one may."""
        ...

    def live(self) -> bool:
        """Return whether the process should be left running."""
        ...

    def refuses_header(self, remote: tuple[str, int], listener: str, why: str) -> None:
        """Note, and log, that a connection of a listener is closed because its PROXY header is at fault."""
        ...

    def refuses_upgrade(self, remote: tuple[str, int], listener: str, why: str) -> None:
        """Note, and log, that a connection of a listener may not become a WebSocket because there are too many."""
        ...

    def turns_away(self, remote: tuple[str, int], listener: str, full: Callable[[], str]) -> bool:
        """Return whether to close a new connection, and log why: too many of its host, or the text of ``full``."""
        ...

    def turn(self, host: str) -> Turn:
        """Return the turns of a task that works for a client on ``host``."""
        ...

    async def secure(
        self, sock: socket.socket, remote: tuple[str, int], entity: ListenerEntity, timeout_s: float, turn: Turn
    ) -> Secured | None:
        """Return the stream of an accepted socket, with TLS if the client begins with it; None if that failed.

        The task has its ``turn``, in which its waits do not count.
        """
        ...

    async def serve_amqp(
        self, sock: socket.socket, remote: tuple[str, int], entity: ListenerEntity, below: object | None
    ) -> None:
        """Serve the AMQP connection on ``sock``, one end of a pair, until it ends, and close it.

        ``below`` is that of ``Secured``.
        """
        ...
