"""The octets of one connection: read and written when the poller says so, within TLS if configured.

No task waits to read or write: the poller calls, and wakes the peer's task for rare events; nothing more is read until
that has handled them.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio

from trouter.engine.connection import Connection
from trouter.net.poller import HUNG_UP, READABLE, WRITABLE, Poller
from trouter.telemetry.connection_records import ConnectionRecord
from trouter.tls.channel import TlsChannel
from trouter.tls.problems import TlsFailed

from .lifetime import Lifetime

READ_BYTES: Final = 131072
#: Seconds for the peer to read the last output and close.
LINGER_S: Final = 2.0
CLOSED_BY_PEER: Final = "peer closed the socket"


class Stream:
    """Joins a socket, with or without TLS, to the engine's connection."""

    __slots__ = (
        "_blocked",
        "_channel",
        "_engine",
        "_lifetime",
        "_max_bytes",
        "_poller",
        "_record",
        "_sock",
        "_waiting",
        "_watched",
        "gone",
    )

    def __init__(
        self,
        sock: socket.socket,
        channel: TlsChannel | None,
        engine: Connection,
        record: ConnectionRecord,
        lifetime: Lifetime,
        poller: Poller,
    ) -> None:
        self._sock = sock
        self._channel = channel
        self._engine = engine
        self._max_bytes = engine.limits.output_limit_bytes
        self._record = record
        self._lifetime = lifetime
        self._poller = poller
        #: The peer's task while it waits. An Event would cost each idle connection 0.7 kB.
        self._waiting: trio.lowlevel.Task | None = None
        #: What the poller watches for besides room for output: READABLE, HUNG_UP or 0.
        self._watched = 0
        #: Output waits until the socket takes more.
        self._blocked = False
        #: The peer has gone, or the connection cannot continue.
        self.gone = False

    # --- reading

    def receive_early(self, early: bytes) -> bool:
        """Process bytes read for detection or behind the TLS handshake; return whether there are any."""
        data = early if self._channel is None else self._decrypt_bytes(b"")
        if data:
            self._record.show_input(data)
            self._engine.receive_data(data)
        return bool(data)

    def begin_reading(self) -> None:
        """Let the poller read until there is an event for the peer's task, or the end; that task is to wait for it.

        It waits by itself, with ``stop_waiting``: a coroutine of this class would be kept for each idle connection.
        """
        self._watch_socket(READABLE)
        self._waiting = trio.lowlevel.current_task()

    async def wait_for_room(self) -> None:
        """Wait for room in the output: a peer that does not read our answers is not read either."""
        while self._blocked and len(self._engine.out) > self._max_bytes:
            await self._wait_for_wake()

    @contextmanager
    def noticing_absence(self) -> Iterator[None]:
        """Pause reading within the context, but notice when the peer hangs up."""
        self._watch_socket(HUNG_UP)
        try:
            yield
        finally:
            self._watch_socket(0)

    def on_readable(self) -> None:
        """Read once and process the input; events stop the reading until they are handled."""
        engine, record = self._engine, self._record
        try:
            data = self._sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self.lose_peer(str(error))
            return
        if not data:
            self.lose_peer(CLOSED_BY_PEER)
            return
        if self._channel is not None:
            data = self._decrypt_bytes(data)
            if not data:
                return
        record.bytes_in += len(data)
        if record.frames is not None:
            record.show_input(data)
        engine.receive_data(data)
        if engine.events or len(engine.out) > self._max_bytes:
            self._watch_socket(0)
            self._wake_waiting()

    def on_events(self, events: int) -> None:
        """Write, read, or end the connection, because the peer hung up while it was not read."""
        if events & WRITABLE:
            self._write_more()
        if self._watched == READABLE and events & ~WRITABLE:
            self.on_readable()
        elif self._watched == HUNG_UP and events & ~WRITABLE:
            self.abort(CLOSED_BY_PEER)

    def _decrypt_bytes(self, data: bytes) -> bytes:
        """Return ``data`` decrypted; b"" if no record is complete, at the end, and after a failure."""
        channel = self._channel
        assert channel is not None  # noqa: S101 - the caller has checked
        try:
            data = channel.decrypt(data)
        except TlsFailed as failed:
            self.lose_peer(str(failed))
            return b""
        if channel.ended and not data:
            self.lose_peer(CLOSED_BY_PEER)
        return data

    # --- the poller, and the peer's task

    def _watch_socket(self, events: int) -> None:
        """Let the poller watch for ``events``, and for room if output waits for it."""
        self._watched = events
        self._poller.watch(self._sock, self, events | WRITABLE if self._blocked else events)

    async def _wait_for_wake(self) -> None:
        """Wait until ``_wake_waiting`` is called."""
        self._waiting = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self.stop_waiting)

    def stop_waiting(self, _: object) -> trio.lowlevel.Abort:
        """Allow cancellation; the task need not be woken any more."""
        self._waiting = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _wake_waiting(self) -> None:
        if self._waiting is not None:
            trio.lowlevel.reschedule(self._waiting)
            self._waiting = None

    # --- writing

    def write_nowait(self) -> None:
        """Write the output; the rest waits until the socket takes more."""
        engine = self._engine
        out = engine.out
        if self._blocked or self.gone or not out:
            return
        try:
            sent = self._send_bytes(out)
        except BlockingIOError:
            sent = 0
        except (OSError, TlsFailed) as error:
            self.lose_peer(str(error))
            return
        if sent == len(out) and not self._keeps_unsent:
            out.clear()
            if engine.paused:
                engine.resume_output()
        else:
            del out[:sent]
            self._blocked = True
            self._watch_socket(self._watched)

    def _write_more(self) -> None:
        """Write as much as the socket takes now; resume paused links once there is room again."""
        engine = self._engine
        out = engine.out
        try:
            del out[: self._send_bytes(out)]
        except BlockingIOError:
            return
        except (OSError, TlsFailed) as error:
            self.lose_peer(str(error))
            return
        if engine.paused and len(out) <= engine.limits.low_water_bytes:
            engine.resume_output()
        if not (out or self._keeps_unsent):
            self._blocked = False
            self._watch_socket(self._watched)
            if not self._watched:  # the task waits for this, and not for events
                self._wake_waiting()

    def _send_bytes(self, out: bytearray) -> int:
        """Send the beginning of ``out``, and count and return its bytes; BlockingIOError, OSError, TlsFailed."""
        record, channel = self._record, self._channel
        if record.frames is not None:
            record.frames.show_output()
        sent = self._sock.send(out) if channel is None else channel.send(self._sock, out)
        record.bytes_out += sent
        if record.frames is not None:
            record.frames.dropped(sent)
        return sent

    @property
    def _keeps_unsent(self) -> bool:
        """True if encrypted bytes wait for the socket."""
        return self._channel is not None and self._channel.unsent

    # --- the end

    def drop_after_bug(self, error: Exception) -> None:
        """Drop the connection because of a bug of ours."""
        self._lifetime.end_after_bug(error)

    def lose_peer(self, why: str) -> None:
        """Note that the peer has gone, or that the connection cannot continue."""
        if not (self.gone or self._engine.finished):
            self._lifetime.log_failure(why)
        self.stop()
        self._wake_waiting()

    def abort(self, why: str) -> None:
        """Drop the connection, whatever its task waits for."""
        self.lose_peer(why)
        self._lifetime.scope.cancel()

    async def close_after_reading(self) -> None:
        """Let the peer read the last output, then close: closing over unread input would discard it."""
        self._watch_socket(0)
        if self._has_read_all():
            return
        with trio.move_on_after(LINGER_S):
            while self._blocked:
                await self._wait_for_wake()
            try:
                if self._channel is not None:
                    self._channel.say_end(self._sock)
                self._sock.shutdown(socket.SHUT_WR)
                while True:
                    await self._poller.wait_readable(self._sock)
                    if not self._sock.recv(READ_BYTES):
                        return
            except OSError:
                return

    def _has_read_all(self) -> bool:
        """Return whether nothing can come any more; within TLS the end of that is still to come."""
        if self._blocked or self._channel is not None or not self._engine.closed_by_both:
            return False
        try:
            return not self._sock.recv(1)  # what a peer sends after its close must not discard ours
        except BlockingIOError:
            return True
        except OSError:
            return False

    def stop(self) -> None:
        """Stop reading and writing."""
        self.gone = True
        self._blocked = False
        self._watch_socket(0)

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()
