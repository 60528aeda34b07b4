"""The octets of one connection: read and written when the poller says so, within TLS if configured.

No task waits to read or write: the poller calls, and wakes the peer's task for rare events; nothing more is read until
that has handled them.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import trio

from trouter.engine.connection import Connection
from trouter.net.poller import GONE, HUNG_UP, READABLE, WRITABLE, Poller
from trouter.net.shares import ProcessorShare
from trouter.telemetry.connection_records import ConnectionRecord
from trouter.tls.channel import TlsChannel
from trouter.tls.problems import TlsFailed

from .lifetime import Lifetime

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

READ_BYTES: Final = 131072
#: Seconds for the peer to read the last output and close.
LINGER_S: Final = 2.0
CLOSED_BY_PEER: Final = "peer closed the socket"
#: The work that is done for a peer after it has gone, as ``EngineLimits.max_work`` counts it, and that of each begin,
#: attach and the like. Nobody can get the answers, so the rest is dropped. Messages count nothing.
LAST_WORK: Final = 16384
EVENT_WORK: Final = 64


class Stream:
    """Joins a socket, with or without TLS, to the engine's connection."""

    __slots__ = (
        "sock",
        "_channel",
        "_engine",
        "_max_bytes",
        "_record",
        "_lifetime",
        "_poller",
        "_unwritable",
        "_last_work",
        "_waiting",
        "_watched",
        "_blocked",
        "_held",
        "_hung_up",
        "gone",
        "share",
    )

    def __init__(
        self,
        sock: socket.socket,
        channel: TlsChannel | None,
        engine: Connection,
        record: ConnectionRecord,
        lifetime: Lifetime,
        poller: Poller,
        share: ProcessorShare,
    ) -> None:
        self.sock = sock
        self._channel = channel
        self._engine = engine
        self._max_bytes: Py_ssize_t = engine.limits.output_limit_bytes
        self._record = record
        self._lifetime = lifetime
        self._poller = poller
        #: The peer's task while it waits. An Event would cost each idle connection 0.7 kB.
        self._waiting: trio.lowlevel.Task | None = None
        #: What the poller watches for besides room for output: READABLE, HUNG_UP or 0.
        self._watched: c_int = 0
        #: Output waits until the socket takes more.
        self._blocked = False
        #: The peer has overrun its window and is not read; it has hung up meanwhile, so that the rest is read.
        self._held = False
        self._hung_up = False
        #: Why nothing can be written any more, "" if it can: the peer has gone, but what it sent before is still read.
        self._unwritable = ""
        #: The work that may still be done for it then.
        self._last_work: Py_ssize_t = LAST_WORK
        #: The peer has gone, or the connection cannot continue.
        self.gone = False
        #: Whose work it does: that of its peer's host, then that of its user.
        self.share = share

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
        """Wait for room: a peer that does not read our answers is not read, nor one that has overrun its window."""
        while not self.gone:
            if self._blocked and len(self._engine.out) > self._max_bytes:
                if self._unwritable:
                    self.lose_peer(self._unwritable)
                    return
                await self._wait_for_wake()
            elif self._must_hold():
                await self._hold_peer()
            else:
                return

    def _must_hold(self) -> bool:
        """Return whether the peer has overrun its window, and may still learn that it is open again."""
        return self._engine.overrun_frames > 0 and not self._hung_up and self._engine.is_overrun

    async def _hold_peer(self) -> None:
        """Leave the peer unread until its window may be open again, or it has hung up."""
        self._held = True
        self._watch_socket(HUNG_UP)
        try:
            await self._wait_for_wake()
        finally:
            self._held = False
            self._watch_socket(0)

    @contextmanager
    def noticing_absence(self) -> Iterator[None]:
        """Pause reading within the context, but notice when the peer hangs up."""
        self._watch_socket(HUNG_UP)
        try:
            yield
        finally:
            self._watch_socket(0)

    def on_readable(self) -> None:
        """Read once and process the input; events stop the reading until they are handled.

        If an earlier read was too much work, more of it is processed instead.
        """
        engine: Connection = self._engine
        record = self._record
        if engine.has_more:
            self.receive_rest()
        else:
            try:
                data = self.sock.recv(READ_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                self.lose_peer(str(error))
                return
            if not data:
                self.lose_peer(self._unwritable or CLOSED_BY_PEER)
                return
            if self._channel is not None:
                data = self._decrypt_bytes(data)
                if not data:
                    return
            record.bytes_in += len(data)
            if record.frames is not None:
                record.show_input(data)
            engine.receive_data(data)
            if self._unwritable:
                self._charge_last_work()
        if engine.events or len(engine.out) > self._max_bytes or (engine.overrun_frames > 0 and self._must_hold()):
            self._watch_socket(0)
            self._wake_waiting()
        elif engine.has_more:
            self._poller.serve_again(self.sock)

    def receive_rest(self) -> None:
        """Process more of what was too much work when it was read."""
        self._engine.receive_data(b"")
        if self._unwritable:
            self._charge_last_work()

    def _charge_last_work(self) -> None:
        """Count what a peer that has gone made the engine do, and lose it if that is too much."""
        engine: Connection = self._engine
        self._last_work -= engine.work + EVENT_WORK * len(engine.events)
        if self._last_work < 0:
            self.lose_peer(self._unwritable)

    def on_events(self, events: c_int) -> None:
        """Write, read, or end the connection, because the peer hung up while it was not read."""
        if events & GONE and not self._unwritable:
            self._end_output(CLOSED_BY_PEER)
        if events & WRITABLE and not self._unwritable:
            self._write_more()
        if self._watched == READABLE and events & ~WRITABLE:
            self.on_readable()
        elif self._held and events & ~WRITABLE:
            self._hung_up = True
            self._wake_waiting()
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

    def _watch_socket(self, events: c_int) -> None:
        """Let the poller watch for ``events``, and for room if output waits for it."""
        self._watched = events
        self._poller.watch(self.sock, self, events | WRITABLE if self._blocked and not self._unwritable else events)
        if events == READABLE and self._engine.has_more:  # it was read already, so no socket becomes readable for it
            self._poller.serve_again(self.sock)

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
        engine: Connection = self._engine
        out: bytearray = engine.out
        if self._blocked or self.gone or not out:
            return
        try:
            sent: Py_ssize_t = self._send_bytes(out)
        except BlockingIOError:
            sent = 0
        except (OSError, TlsFailed) as error:
            self._fail_output(error)
            return
        if sent == len(out) and not self._keeps_unsent:
            out.clear()
            if engine.paused:
                engine.resume_output()
        else:
            del out[:sent]
            self._blocked = True
            self._watch_socket(self._watched)
        if self._held and not engine.is_overrun:
            self._wake_waiting()

    def _write_more(self) -> None:
        """Write as much as the socket takes now; resume paused links once there is room again."""
        engine: Connection = self._engine
        out: bytearray = engine.out
        try:
            del out[: self._send_bytes(out)]
        except BlockingIOError:
            return
        except (OSError, TlsFailed) as error:
            self._fail_output(error)
            return
        if engine.paused and len(out) <= engine.limits.low_water_bytes:
            engine.resume_output()
        if not (out or self._keeps_unsent):
            self._blocked = False
            self._watch_socket(self._watched)
            if self._held or not self._watched:  # the task waits for this, and not for events
                self._wake_waiting()

    def _fail_output(self, error: OSError | TlsFailed) -> None:
        """Note that nothing can be written."""
        if isinstance(error, BrokenPipeError | ConnectionResetError):
            self._end_output(str(error))
        else:
            self.lose_peer(str(error))

    def _end_output(self, why: str) -> None:
        """Write nothing more; a peer that has gone is lost once what it sent before is read, or is too much work."""
        self._unwritable = why
        self._blocked = True
        self._watch_socket(self._watched)
        if not self._watched:  # the task may wait for room
            self._wake_waiting()

    def _send_bytes(self, out: bytearray) -> Py_ssize_t:
        """Send the beginning of ``out``, and count and return its bytes; BlockingIOError, OSError, TlsFailed."""
        record, channel = self._record, self._channel
        if record.frames is not None:
            record.frames.show_output()
        sent: Py_ssize_t = self.sock.send(out) if channel is None else channel.send(self.sock, out)
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
        """Drop the connection because of a bug of ours, at once if it is ending already."""
        if self._lifetime.is_ending:
            self.stop()
        self._lifetime.end_after_bug(error)
        self._wake_waiting()

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
        if self._unwritable or self._has_read_all():
            return
        with trio.move_on_after(LINGER_S):
            while self._blocked:
                await self._wait_for_wake()
            try:
                if self._channel is not None:
                    self._channel.say_end(self.sock)
                self.sock.shutdown(socket.SHUT_WR)
                while True:
                    await self._poller.wait_readable(self.sock)
                    if not self.sock.recv(READ_BYTES):
                        return
            except OSError:
                return

    def _has_read_all(self) -> bool:
        """Return whether nothing can come any more; within TLS the end of that is still to come."""
        if self._blocked or self._channel is not None or not self._engine.closed_by_both:
            return False
        try:
            return not self.sock.recv(1)  # what a peer sends after its close must not discard ours
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
        self.sock.close()
