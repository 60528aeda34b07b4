"""A client that tries passwords as fast as the router permits, from an address of its own.

`python -m bench.guessing PORT RATE` runs until SIGTERM; it prints a line when it has begun, and at its end the failures
per second, by an outcome or by a closed socket.
"""

from __future__ import annotations

import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import cycle
from pathlib import Path
from typing import Final

from trouter.wire.framing import SASL_HEADER, frame
from trouter.wire.performatives import SaslInit, encode_performative
from trouter_plugins.users_file import put_user

from .beside import beside

#: An address of this machine other than the pair's.
HOST: Final = "127.0.0.2"
RATE: Final = 1000
#: Concurrent attempts.
AT_ONCE: Final = 200
#: Seconds of delayed attempts that are made up for.
LATE_S: Final = 0.1
#: The limits by host that `secureDefaults` sets; they do not hold for the pair's address.
LIMITED_BY_HOST: Final = """handshakeExempt: 127.0.0.1
    maxHandshakesPerHost: 20
    acceptRatePerHost: 50
    acceptBurstPerHost: 100"""
_WRONG: Final = SASL_HEADER + frame(0, encode_performative(SaslInit("PLAIN", b"\0alice\0wrong")), 1)


def guarded(folder: Path, port: int) -> tuple[str, str]:
    """Return the configuration of such a router: attributes of the router, and a listener with passwords."""
    put_user(folder / "users", "alice", b"nobody guesses this")
    listener = f"host: 127.0.0.1, port: {port}, authenticatePeer: yes, saslMechanisms: PLAIN, allowInsecurePlain: yes"
    return f"usersFile: {folder / 'users'}\n    {LIMITED_BY_HOST}", f"listener {{ {listener} }}\n"


def guessed_at(port: int) -> AbstractContextManager[list[float]]:
    """Try passwords for the length of the block; afterwards the list has the failures per second."""
    return beside("bench.guessing", port, RATE)


class Guesser:
    """A client that counts its failures. One epoll serves all its attempts, to take little CPU from the measurement."""

    def __init__(self, port: int, rate: int, words: Sequence[bytes] = (_WRONG,), count: int = 0) -> None:
        """Prepare to send ``words`` in turn, one in each attempt; ``count`` is the count of attempts, 0 for no end."""
        self.port = port
        self.rate = rate
        self.failures = 0
        self._words = cycle(words)
        self._count = count
        self._begun = 0
        self._stopped = False
        self._epoll = select.epoll()
        self._attempts: dict[int, socket.socket] = {}

    def run(self) -> float:
        """Make all attempts, or try until SIGTERM; return the seconds that it took."""
        signal.signal(signal.SIGTERM, self._stop)
        print("begun", flush=True)
        began_s = due_s = time.monotonic()
        while not self._stopped and (not self._count or self.failures < self._count):
            now_s = time.monotonic()
            due_s = max(due_s, now_s - LATE_S)
            while due_s <= now_s and len(self._attempts) < AT_ONCE and self._begun != (self._count or -1):
                self._begin()
                due_s += 1 / self.rate
            for number, what in self._epoll.poll(max(0.001, due_s - now_s)):
                self._go_on(number, what)
        return time.monotonic() - began_s

    def _stop(self, number: int, frame: object) -> None:
        self._stopped = True

    def _begin(self) -> None:
        self._begun += 1
        sock = socket.socket()
        sock.setblocking(False)
        sock.bind((HOST, 0))
        sock.connect_ex(("127.0.0.1", self.port))
        self._attempts[sock.fileno()] = sock
        self._epoll.register(sock, select.EPOLLOUT)

    def _go_on(self, number: int, what: int) -> None:
        """Send a password on a new connection, or count a failure at the answer or the end of the connection."""
        sock = self._attempts[number]
        try:
            if what & select.EPOLLOUT:
                sock.send(next(self._words))
                self._epoll.modify(number, select.EPOLLIN)
                return
            if sock.recv(4096):
                return
        except OSError:
            pass
        del self._attempts[number]
        sock.close()
        self.failures += 1


if __name__ == "__main__":
    guesser = Guesser(int(sys.argv[1]), int(sys.argv[2]))
    lasted_s = guesser.run()
    print(guesser.failures / lasted_s, flush=True)
