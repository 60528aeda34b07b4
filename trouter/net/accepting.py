"""The loop that takes connections from a listening socket: the same for listeners of AMQP and of HTTP."""

from __future__ import annotations

import errno
import logging
import socket
from typing import Final, Protocol

import trio

from trouter.config import ListenerEntity

#: Connections taken from one socket before other tasks get their turn.
ACCEPTS_IN_A_ROW: Final = 16
#: How long to wait when the system has no more descriptors or memory for a connection.
OUT_OF_RESOURCES_PAUSE_S: Final = 0.1
_OVERLOAD: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})


class Accepting(Protocol):
    """A listener, as the loop sees it."""

    entity: ListenerEntity

    @property
    def stopped(self) -> bool:
        """Return whether the listener takes no more connections."""

    async def wait_turn(self) -> None:
        """Return when one more connection may be taken."""

    async def wait_readable(self, sock: socket.socket) -> None:
        """Return when ``sock`` is worth another look: nothing waits on it now."""

    def admit(self, sock: socket.socket, address: tuple[str, int], nursery: trio.Nursery) -> None:
        """Serve a connection in ``nursery``, or close it."""


async def accept_all(listener: Accepting, sock: socket.socket, nursery: trio.Nursery, log: logging.Logger) -> None:
    """Take the connections that come on ``sock``, until ``listener`` is stopped."""
    in_a_row = 0
    while True:
        await listener.wait_turn()
        try:
            accepted, address = sock.accept()
        except BlockingIOError:
            in_a_row = 0
            await listener.wait_readable(sock)
            continue
        except OSError as error:
            if listener.stopped:
                return
            if error.errno in _OVERLOAD:
                entity = listener.entity
                log.error("cannot accept on %s: %s; pausing", entity.name or entity.port, error.strerror)
                await trio.sleep(OUT_OF_RESOURCES_PAUSE_S)
            continue
        listener.admit(accepted, address, nursery)
        in_a_row += 1
        if in_a_row >= ACCEPTS_IN_A_ROW:
            in_a_row = 0
            await trio.lowlevel.checkpoint()
