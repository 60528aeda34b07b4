"""What the HTTP room needs of the site it serves pages for (a router); the wiring of the process implements it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import trio

from trouter.config import ListenerEntity


@dataclass(frozen=True, slots=True)
class Secured:
    """A stream to a client, and what the router knows of the TLS below it; None without."""

    stream: trio.abc.HalfCloseableStream
    below: object | None


class Site(Protocol):
    """The router behind the HTTP listeners, or another program."""

    def exposition(self, tenant: str) -> bytes:
        """Return this moment's figures as Prometheus text; with a name those of a tenant, maybe an unknown one."""
        ...

    async def healthy(self) -> bool:
        """Return whether it works: in a router, whether something sent through the core came out again."""
        ...

    def ready(self) -> bool:
        """Return whether it does its work: in a router, whether the listeners stand and it is not about to stop."""
        ...

    def reasons(self) -> Sequence[str]:
        """Return why it is not ready, a line each; nothing where it is."""
        ...

    def live(self) -> bool:
        """Return whether the process should be left running."""
        ...

    def turns_away(self, remote: tuple[str, int], full: Callable[[], str]) -> bool:
        """Return whether a new connection is to be closed, and log why: too many of its host, or what ``full`` says."""
        ...

    async def secure(
        self, sock: socket.socket, remote: tuple[str, int], entity: ListenerEntity, timeout_s: float
    ) -> Secured | None:
        """Return the stream of an accepted socket, within TLS if the client begins with it; None if that has failed."""
        ...

    async def serve_amqp(
        self, sock: socket.socket, remote: tuple[str, int], entity: ListenerEntity, below: object | None
    ) -> None:
        """Serve the AMQP connection on ``sock``, one end of a pair, to its end, and close it.

        ``below`` is what ``secure`` knew of TLS.
        """
        ...


class PagesOnly:
    """The part of a ``Site`` that has only pages, without encryption: no TLS, no AMQP, no client turned away."""

    def reasons(self) -> Sequence[str]:
        """Return no reasons: this site has none to report."""
        return ()

    def turns_away(self, remote: tuple[str, int], full: Callable[[], str]) -> bool:
        """Return whether ``full`` says why: the listener's own bounds are enough."""
        return bool(full())

    async def secure(
        self, sock: socket.socket, remote: tuple[str, int], entity: ListenerEntity, timeout_s: float
    ) -> Secured | None:
        """Return None for every client: there is no certificate."""
        return None

    async def serve_amqp(
        self, sock: socket.socket, remote: tuple[str, int], entity: ListenerEntity, below: object | None
    ) -> None:
        """Close the socket: this site has no AMQP."""
        sock.close()
