"""What the HTTP room needs of the router; who wires the process implements it."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Protocol

import trio

from trouter.config import ListenerEntity

from .figures import Figures, TenantFigures


@dataclass(frozen=True, slots=True)
class Secured:
    """A stream to a client, and what the router knows of the TLS below it; None without."""

    stream: trio.abc.HalfCloseableStream
    below: object | None


class Site(Protocol):
    """The router behind the HTTP listeners."""

    def figures(self) -> Figures:
        """This moment's figures."""
        ...

    def tenant(self, name: str) -> TenantFigures:
        """This moment's figures of one tenant, which may be unknown yet."""
        ...

    async def healthy(self) -> bool:
        """Whether something sent through the core came out again."""
        ...

    def ready(self) -> bool:
        """Whether the listeners stand and the router is not about to stop."""
        ...

    def live(self) -> bool:
        """Whether the process should be left running."""
        ...

    def turns_away(self, remote: tuple[str, int]) -> bool:
        """Whether a connection that just arrived is to be closed, because too many come from there; tells why."""
        ...

    async def secure(
        self, sock: socket.socket, remote: tuple[str, int], entity: ListenerEntity, timeout_s: float
    ) -> Secured | None:
        """The stream of an accepted socket, within TLS if the client begins with that; None if that has failed."""
        ...

    async def serve_amqp(
        self, sock: socket.socket, remote: tuple[str, int], entity: ListenerEntity, below: object | None
    ) -> None:
        """Serve the AMQP connection on ``sock``, one end of a pair, to its end, and close it.

        ``below`` is what ``secure`` knew of TLS.
        """
        ...
