"""A TCP relay of the tests: it can reset connections, leave them half open, or limit the bytes per second."""

from __future__ import annotations

import socket
import struct
import threading
import time
from contextlib import suppress
from typing import Final

from tests.routers import DEADLINE_S

_READ_BYTES: Final = 65536
#: Close with a reset (SO_LINGER on, zero seconds).
_RESET: Final = struct.pack("ii", 1, 0)


class Relay:
    """Listen at ``port`` and relay each connection to ``target``, a port of this machine."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._pairs: list[_Pair] = []
        #: Limit in bytes per second for each direction; 0 for none.
        self.rate = 0
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self._porter = threading.Thread(target=self._accept, daemon=True)
        self._porter.start()

    def reset(self) -> None:
        """Reset each connection at both ends."""
        for pair in self._pairs:
            pair.reset(pair.near, pair.far)

    def leave_half_open(self) -> None:
        """Reset the ends that dialled; the dialled ends get no notice."""
        for pair in self._pairs:
            pair.reset(pair.near)

    def close(self) -> None:
        """Stop listening, and close all connections."""
        self._door.shutdown(socket.SHUT_RDWR)
        self._porter.join(DEADLINE_S)
        self._door.close()
        self.reset()
        for pair in self._pairs:
            pair.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            self._pairs.append(_Pair(self, near, far))


class _Pair:
    """The two sockets of one connection, and a thread for each direction."""

    def __init__(self, relay: Relay, near: socket.socket, far: socket.socket) -> None:
        self._relay = relay
        self.near, self.far = near, far
        self._cut = False
        self._carriers = [
            threading.Thread(target=self._carry, args=ends, daemon=True) for ends in ((near, far), (far, near))
        ]
        for carrier in self._carriers:
            carrier.start()

    def reset(self, *ends: socket.socket) -> None:
        """Stop relaying, and reset these ends."""
        self._cut = True
        for end in (self.near, self.far):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RD)  # wakes the thread that reads from it
        for carrier in self._carriers:
            carrier.join(DEADLINE_S)
        for end in ends:
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            end.close()

    def close(self) -> None:
        """Close both sockets."""
        self.near.close()
        self.far.close()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while octets := source.recv(_READ_BYTES):
                if self._relay.rate:
                    time.sleep(len(octets) / self._relay.rate)
                sink.sendall(octets)
            if not self._cut:
                sink.shutdown(socket.SHUT_WR)
