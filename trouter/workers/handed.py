"""Sockets that come from the parent: a listener's connections, and the connections between workers."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any, Final

#: What is sent with a client's connection; the connection of a worker comes with the number of that worker.
OF_A_CLIENT: Final = 0


class HandedSocket(socket.socket):
    """A listening socket of the parent, as a worker sees it: the connections come from the parent, one by one."""

    def __init__(self, descriptor: int, host: str, port: int) -> None:
        super().__init__(fileno=descriptor)
        self.setblocking(False)
        self._where = host, port
        #: That of its connections, which the system would have to be asked for.
        self._client_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    def getsockname(self) -> tuple[str, int]:
        """Return the host and port that the parent listens on."""
        return self._where

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection and the peer's address; BlockingIOError if there is none, or the parent ended."""
        octets, descriptors, _, _ = socket.recv_fds(self, 1, 1)
        if not octets:
            raise BlockingIOError
        if not descriptors:  # there was no room for it in this process
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        if octets[0] != OF_A_CLIENT:
            sibling = SiblingSocket(descriptors[0], octets[0])
            return sibling, sibling.getpeername()
        sock = socket.socket(self._client_family, socket.SOCK_STREAM, 0, descriptors[0])
        try:
            return sock, sock.getpeername()
        except OSError:  # the client has gone
            sock.close()
            raise


class SiblingSocket(socket.socket):
    """A connection to another worker of this machine, which has no address: its number stands for the port."""

    def __init__(self, descriptor: int, place: int) -> None:
        super().__init__(fileno=descriptor)
        self._place = place

    def getsockname(self) -> tuple[str, int]:
        """Return the address of this machine."""
        return "127.0.0.1", 0

    def getpeername(self) -> tuple[str, int]:
        """Return the address of this machine and the number of the other worker."""
        return "127.0.0.1", self._place

    def setsockopt(self, level: int, *values: Any) -> None:
        """Set an option, unless it is one of TCP."""
        if level != socket.IPPROTO_TCP:
            super().setsockopt(level, *values)
