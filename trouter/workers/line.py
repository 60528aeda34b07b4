"""The line between the parent and a worker: small messages, which may carry open sockets."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Final

import trio

#: The longest message, and the most descriptors that one carries.
MAX_BYTES: Final = 65_536
MAX_DESCRIPTORS: Final = 64
#: Characters of an error in a message.
MAX_TEXT: Final = 4_000

Message = Mapping[str, object]


class LineClosed(OSError):
    """The other end has closed the line, or has ended."""


class Line:
    """One end of a line. Each message arrives as a whole, or not at all."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock

    @classmethod
    def at(cls, descriptor: int) -> Line:
        """Return the end of a line that is open as this descriptor."""
        return cls(socket.socket(fileno=descriptor))

    @staticmethod
    def pair() -> tuple[Line, socket.socket]:
        """Return one end of a new line, and the socket that makes the other end."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return Line(ours), theirs

    def close(self) -> None:
        """Close this end; a second call does nothing."""
        self._sock.close()

    def send(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        """Send a message; OSError if the other end has closed, or has not read for a long time."""
        socket.send_fds(self._sock, [json.dumps(message).encode()], descriptors)

    async def receive(self) -> tuple[Message, list[int]]:
        """Return the next message and its descriptors, which belong to the caller; LineClosed."""
        while True:
            try:
                return self._take()
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._sock)

    def receive_first(self) -> tuple[Message, list[int]]:
        """Wait for the first message, before there are tasks that could; see ``receive``."""
        self._sock.setblocking(True)
        try:
            return self._take()
        finally:
            self._sock.setblocking(False)

    def _take(self) -> tuple[Message, list[int]]:
        octets, descriptors, flags, _ = socket.recv_fds(self._sock, MAX_BYTES, MAX_DESCRIPTORS)
        if not octets:
            raise LineClosed("the line is closed")
        if flags & socket.MSG_CTRUNC:
            close_all(descriptors)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return json.loads(octets), descriptors


def close_all(descriptors: Sequence[int]) -> None:
    """Close descriptors that came with a message and that this process does not use."""
    for each in descriptors:
        os.close(each)
