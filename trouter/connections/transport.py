"""The octets of one connection: read when the poller says so, written as the socket takes them, within TLS if
configured.

No task waits to read: the poller calls, and wakes the peer's task for rare events; nothing more is read until that has
handled them. A task that waits for a blocked socket exists only while there is one.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import trio

from trouter.admission.handshakes import Newcomer
from trouter.engine.connection import Connection
from trouter.engine.limits import EngineLimits
from trouter.logs.frame_log import FrameLog
from trouter.net.hub import Hub
from trouter.net.poller import HUNG_UP, Poller
from trouter.telemetry.connection_records import Account
from trouter.tls.channel import TlsChannel
from trouter.tls.problems import TlsFailed

READ_BYTES: Final = 131072
#: Seconds for the peer to read the last output and close.
LINGER_S: Final = 2.0


class Owner(Protocol):
    """The owner of a transport."""

    def log_failure(self, why: str) -> None:
        """Log, once, why the connection failed."""

    def vanish(self) -> None:
        """End the connection: the peer hung up while it was not read."""

    def crash(self, error: Exception) -> None:
        """Drop the connection because of a bug of ours."""


class Absence:
    """A reader that notices when a peer hangs up that is not read at the moment."""

    __slots__ = ("_owner",)

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def on_readable(self) -> None:
        """End the connection: the peer hung up."""
        self._owner.vanish()

    def crash(self, error: Exception) -> None:
        """Drop the connection because of a bug of ours."""
        self._owner.crash(error)


class Transport:
    """Joins a socket to the engine's connection. ``nursery`` must be set before anything is written."""

    __slots__ = (
        "_account",
        "_channel",
        "_connection",
        "_frames",
        "_hub",
        "_low_bytes",
        "_max_bytes",
        "_owner",
        "_poller",
        "_sock",
        "_waiting",
        "_writing",
        "gone",
        "newcomer",
        "nursery",
    )

    nursery: trio.Nursery

    def __init__(
        self,
        owner: Owner,
        sock: socket.socket,
        channel: TlsChannel | None,
        connection: Connection,
        limits: EngineLimits,
        account: Account,
        frames: FrameLog,
        hub: Hub,
        poller: Poller,
    ) -> None:
        self._owner = owner
        self._sock = sock
        self._channel = channel
        self._connection = connection
        self._max_bytes = limits.output_limit_bytes
        self._low_bytes = limits.low_water_bytes
        self._account = account
        self._frames = frames
        self._hub = hub
        self._poller = poller
        #: The peer's task while it waits for events. An Event would cost each idle connection 0.7 kB.
        self._waiting: trio.lowlevel.Task | None = None
        #: Set once a blocked output is written; None while nothing blocks.
        self._writing: trio.Event | None = None
        #: The peer has gone, or the connection cannot continue.
        self.gone = False
        #: The peer as the limit of handshakes counts it; None if it does not.
        self.newcomer: Newcomer | None = None

    # --- reading

    def receive_early(self, early: bytes) -> bool:
        """Process bytes read for detection or behind the TLS handshake; return whether there are any."""
        data = early if self._channel is None else self._decrypted(b"")
        if data:
            if self._frames.on:
                self._frames.received(data)
            self._connection.receive_data(data)
        return bool(data)

    async def wait_for_events(self) -> None:
        """Let the poller read until there is an event for the peer's task, or the end."""
        self._poller.add(self._sock, self)
        self._waiting = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._stop_waiting)

    def _stop_waiting(self, _: object) -> trio.lowlevel.Abort:
        """Allow cancellation; ``_ring`` need not wake the task any more."""
        self._waiting = None
        return trio.lowlevel.Abort.SUCCEEDED

    async def wait_for_room(self) -> None:
        """Wait for room in the output: a peer that does not read our answers is not read either."""
        while len(self._connection.out) > self._max_bytes and self._writing is not None:
            await self._writing.wait()

    @contextmanager
    def noticing_absence(self) -> Iterator[None]:
        """Pause reading within the context, but notice when the peer hangs up."""
        self._poller.add(self._sock, Absence(self._owner), HUNG_UP)
        try:
            yield
        finally:
            self._poller.remove(self._sock)

    def on_readable(self) -> None:
        """Read once and process the input; events stop the reading until they are handled."""
        connection = self._connection
        try:
            data = self._sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self.lose(str(error))
            return
        if not data:
            self.lose("peer closed the socket")
            return
        if self._channel is not None:
            data = self._decrypted(data)
            if not data:
                return
        self._account.bytes_in += len(data)
        if self._frames.on:
            self._frames.received(data)
        if self.newcomer is not None:
            self.newcomer.received_bytes += len(data)
        connection.receive_data(data)
        if connection.events or len(connection.out) > self._max_bytes:
            self._ring()

    def crash(self, error: Exception) -> None:
        """Drop the connection because of a bug of ours."""
        self._owner.crash(error)

    def lose(self, why: str) -> None:
        """Note that the peer has gone, or that the connection cannot continue."""
        if not (self.gone or self._connection.finished):
            self._owner.log_failure(why)
        self.gone = True
        self._ring()

    def _decrypted(self, data: bytes) -> bytes:
        """Return ``data`` decrypted; b"" if no record is complete, at the end, and after a failure."""
        channel = self._channel
        assert channel is not None  # noqa: S101 - the caller has checked
        try:
            data = channel.decrypt(data)
        except TlsFailed as failed:
            self.lose(str(failed))
            return b""
        if channel.ended and not data:
            self.lose("peer closed the socket")
        return data

    def _ring(self) -> None:
        """Wake the peer's task, and stop reading until it has handled the events."""
        self._poller.remove(self._sock)
        if self._waiting is not None:
            trio.lowlevel.reschedule(self._waiting)
            self._waiting = None

    # --- writing

    def write_nowait(self) -> None:
        """Write the output; the rest waits until the socket takes more."""
        out = self._connection.out
        if self._writing is not None or self.gone or not out:
            return
        if self._frames.on:
            self._frames.show_output()
        channel = self._channel
        try:
            sent = self._sock.send(out) if channel is None else channel.send(self._sock, out)
        except BlockingIOError:
            sent = 0
        except (OSError, TlsFailed) as error:
            self.lose(str(error))
            return
        if sent == len(out) and (channel is None or not channel.unsent):
            out.clear()
            self._account.bytes_out += sent
            self._frames.dropped(sent)
            if self._connection.paused:
                self._connection.resume_output()
        else:
            self._sent(sent)
            self._writing = trio.Event()
            self.nursery.start_soon(self._write_blocked, self._writing)

    async def _write_blocked(self, written: trio.Event) -> None:
        """Write as the socket takes it; resume paused links once there is room again."""
        connection = self._connection
        out = connection.out
        channel = self._channel
        try:
            while out or (channel is not None and channel.unsent):
                await trio.lowlevel.wait_writable(self._sock)
                if self._frames.on:
                    self._frames.show_output()
                try:
                    sent = self._sock.send(out) if channel is None else channel.send(self._sock, out)
                except BlockingIOError:
                    continue
                self._sent(sent)
                if len(out) <= self._low_bytes and connection.paused:
                    connection.resume_output()
                    self._hub.flush()
        except (OSError, TlsFailed) as error:
            self.lose(str(error))
        finally:
            self._writing = None
            written.set()

    def _sent(self, count: int) -> None:
        """Remove the bytes that the socket took from the front of the output."""
        self._account.bytes_out += count
        del self._connection.out[:count]
        self._frames.dropped(count)

    # --- the end

    async def linger(self) -> None:
        """Let the peer read the last output, then close: closing over unread input would discard it."""
        self._poller.remove(self._sock)
        with trio.move_on_after(LINGER_S):
            if self._writing is not None:
                await self._writing.wait()
            try:
                if self._channel is not None:
                    self._channel.say_end(self._sock)
                self._sock.shutdown(socket.SHUT_WR)
                while True:
                    await trio.lowlevel.wait_readable(self._sock)
                    if not self._sock.recv(READ_BYTES):
                        return
            except OSError:
                return

    def stop(self) -> None:
        """Stop reading and writing."""
        self.gone = True
        self._poller.remove(self._sock)

    def close(self) -> None:
        """Close the socket and drop the owner, so that neither waits for the garbage collector."""
        self._sock.close()
        del self._owner
