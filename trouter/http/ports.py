"""What the HTTP room needs of the router; who wires the process implements it."""

from __future__ import annotations

import socket
from typing import Protocol

from trouter.config import ListenerEntity

from .figures import Figures


class Site(Protocol):
    """The router behind the HTTP listeners."""

    def figures(self) -> Figures:
        """This moment's figures."""
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

    async def serve_amqp(self, sock: socket.socket, remote: tuple[str, int], entity: ListenerEntity) -> None:
        """Serve the AMQP connection on ``sock``, one end of a pair, to its end, and close it."""
        ...
