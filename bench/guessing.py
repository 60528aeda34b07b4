"""Somebody who guesses passwords as fast as the router lets him, from an address of his own.

`python -m bench.guessing PORT RATE` tries until it is told to stop; a line says that it has begun, another one how many
times it was turned away in a second, be it with an outcome or by a closed socket.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import trio

from trouter.wire.framing import SASL_HEADER, frame
from trouter.wire.performatives import SaslInit, encode_performative
from trouter_plugins.users_file import put_user

#: Another address of this machine than the one that the pair comes from.
HOST: Final = "127.0.0.2"
RATE: Final = 1000
#: Attempts at a time.
AT_ONCE: Final = 200
_WRONG: Final = SASL_HEADER + frame(0, encode_performative(SaslInit("PLAIN", b"\0alice\0wrong")), 1)


def guarded(folder: Path, port: int) -> tuple[str, str]:
    """What such a router is configured with: attributes of the router, and a listener with passwords."""
    put_user(folder / "users", "alice", b"nobody guesses this")
    listener = f"host: 127.0.0.1, port: {port}, authenticatePeer: yes, saslMechanisms: PLAIN, allowInsecurePlain: yes"
    return f"usersFile: {folder / 'users'}\n    handshakeExempt: 127.0.0.1", f"listener {{ {listener} }}\n"


@contextmanager
def guessed_at(port: int) -> Iterator[list[float]]:
    """While this lasts somebody guesses; afterwards the list has how often a second it failed."""
    rates: list[float] = []
    command = [sys.executable, "-m", "bench.guessing", str(port), str(RATE)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as guesser:
        assert guesser.stdout is not None
        guesser.stdout.readline()
        try:
            yield rates
        finally:
            guesser.send_signal(signal.SIGTERM)
            rates.append(float(guesser.stdout.readline() or 0))


class Guesser:
    """Counts its failures."""

    def __init__(self, port: int, rate: int) -> None:
        self.port = port
        self.rate = rate
        self.failures = 0
        self._room = trio.CapacityLimiter(AT_ONCE)

    async def run(self) -> None:
        """Guess until told to stop."""
        with trio.open_signal_receiver(signal.SIGTERM) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._guess_all, nursery)
                began_s = trio.current_time()
                print("begun", flush=True)
                await anext(aiter(signals))
                print(self.failures / (trio.current_time() - began_s), flush=True)
                nursery.cancel_scope.cancel()

    async def _guess_all(self, nursery: trio.Nursery) -> None:
        due_s = trio.current_time()
        while True:
            due_s = max(due_s + 1 / self.rate, trio.current_time() - 0.1)
            await trio.sleep_until(due_s)
            await self._room.acquire_on_behalf_of(attempt := object())
            nursery.start_soon(self._guess, attempt)

    async def _guess(self, attempt: object) -> None:
        try:
            with trio.socket.socket() as sock:
                await sock.bind((HOST, 0))
                await sock.connect(("127.0.0.1", self.port))
                await sock.send(_WRONG)
                while await sock.recv(4096):
                    pass
        except OSError:
            pass
        finally:
            self._room.release_on_behalf_of(attempt)
        self.failures += 1


if __name__ == "__main__":
    trio.run(Guesser(int(sys.argv[1]), int(sys.argv[2])).run)
