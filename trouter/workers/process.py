"""The process of one worker, as the parent holds it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import trio

from trouter.net.parts import Key

from .calls import Channel, pair

#: Without a sign of life for so many seconds a worker gets no more connections and calls; and is ended. On a busy
#: machine a thousand TLS handshakes can take one half a minute, and to end it would bring them all again.
SILENT_S: Final = 5.0
HUNG_S: Final = 60.0
#: The program of a worker, to which the number of a descriptor is appended.
PROGRAM: Final = (sys.executable, "-P", "-m", "trouter.cli.worker")


class SpareProcess(NamedTuple):
    """A process that has imported all modules and waits for its number, and the channel to it."""

    process: subprocess.Popen[bytes]
    channel: Channel

    @classmethod
    def start(cls, program: Sequence[str]) -> SpareProcess:
        """Start a process."""
        channel, theirs = pair()
        with theirs:
            process = subprocess.Popen(  # noqa: S603  # this very program
                [*program, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C reaches the parent alone
            )
        return cls(process, channel)

    def end(self) -> None:
        """End the process, which is not needed any more."""
        self.process.kill()
        self.process.wait()
        self.channel.close()


@dataclass(eq=False, slots=True)
class Worker:
    """One running worker process, and what the parent holds of it."""

    place: int
    process: subprocess.Popen[bytes]
    channel: Channel
    #: Where its connections go: by listener one socket for each address; and the one for connections of workers.
    listeners: dict[Key, list[socket.socket]] = field(default_factory=dict)
    siblings: socket.socket | None = None
    #: It takes the calls of the other workers.
    meets_others: bool = False
    ready: trio.Event = field(default_factory=trio.Event)
    ended: trio.Event = field(default_factory=trio.Event)
    #: When it last gave a sign of life.
    alive_at_s: float = field(default_factory=trio.current_time)

    def close(self) -> None:
        """Close what the parent holds of it."""
        self.channel.close()
        for key in list(self.listeners):
            self.close_listener(key)
        if self.siblings is not None:
            self.siblings.close()

    def close_listener(self, key: Key) -> None:
        """Hand it no more connections of a listener."""
        for sock in self.listeners.pop(key, ()):
            trio.lowlevel.notify_closing(sock)  # a task waits for its end
            sock.close()

    @property
    def runs(self) -> bool:
        """True as long as its process is not known to have ended."""
        return self.process.returncode is None

    @property
    def serves(self) -> bool:
        """True if it has begun to serve, and has not ended."""
        return self.ready.is_set() and self.runs

    @property
    def silent_s(self) -> float:
        """The seconds since its last sign of life."""
        return trio.current_time() - self.alive_at_s

    @property
    def is_silent(self) -> bool:
        """True if it has given no sign of life for a while."""
        return self.silent_s > SILENT_S

    def signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.runs:
            self.process.send_signal(number)

    async def wait_end(self) -> None:
        """Wait until the process has ended."""
        descriptor = os.pidfd_open(self.process.pid)
        try:
            await trio.lowlevel.wait_readable(descriptor)
        finally:
            os.close(descriptor)
        self.process.wait()
        self.ended.set()

    def describe_end(self) -> str:
        """Return how the process has ended."""
        status = self.process.returncode
        return f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


class Lookout:
    """Finds the workers that hang: it counts only the time in which this process could hear them."""

    def __init__(self) -> None:
        self._looked_at_s = trio.current_time()

    def hung_of(self, workers: Iterable[Worker]) -> list[Worker]:
        """Return the workers without a sign of life for too long; to be called every second or so.

        If this process stood still, as in a container that was paused, so may they have; and it has read nothing.
        """
        now_s = trio.current_time()
        stood_still, self._looked_at_s = now_s - self._looked_at_s > SILENT_S, now_s
        hung = []
        for worker in workers:
            if stood_still:
                worker.alive_at_s = now_s
            is_watched = worker.ready.is_set() or worker.channel.is_closed
            if is_watched and worker.silent_s > HUNG_S and worker.runs:
                hung.append(worker)
        return hung
