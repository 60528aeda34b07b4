"""One connection without a socket: bytes in, events and bytes out (AMQP 1.0 part 2, 2.2-2.4).

``receive_data`` takes the bytes of one read and works through every whole frame. Transfers, dispositions and flows go
to the links' sinks at once; rarer frames become ``events``. ``flush`` then writes what was gathered; the bytes to send
are in ``out``. Nothing that the peer sends raises: a fault is answered as its row in ``faults`` says, and reported as
an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trouter.wire.constants import MAX_NODES
from trouter.wire.errors import DecodeError
from trouter.wire.framing import AMQP_HEADER, FRAME_AMQP, FrameReader, FramingError, frame
from trouter.wire.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    End,
    Error,
    Open,
    Performative,
    decode_performative,
    encode_performative,
)
from trouter.wire.transfers import FrequentFrames, read_descriptor

from .attaches import charged_bytes
from .channels import Channels
from .events import ConnectionClosed, ConnectionOpened, Event, LinkAttached, LinkDetached, SessionBegun, SessionEnded
from .faults import Fault, Misuse, PeerFault, Scope
from .header import take_amqp_header
from .idle import IdleTimeouts
from .limits import UNLIMITED, EngineLimits
from .link import receive_attach, receive_detach
from .link_base import DETACHING, Link
from .ports import Budget, ConnectionOwner, ConnectionPort
from .sasl import SaslLayer
from .session import Session
from .states import CONNECTION_NEXT, ConnectionState, ConnectionStep, IllegalStep, SessionState, advance

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

    from trouter.wire.transfers import DispositionReader, FlowReader, TransferReader

NAMES = {0x10: "open", 0x11: "begin", 0x12: "attach", 0x13: "flow", 0x14: "transfer", 0x15: "disposition"}
NAMES |= {0x16: "detach", 0x17: "end", 0x18: "close"}

_OPEN: Final[c_int] = 0x10
_ATTACH: Final[c_int] = 0x12
_TRANSFER: Final[c_int] = 0x14
_FLOW: Final[c_int] = 0x13
_DISPOSITION: Final[c_int] = 0x15
#: The largest frame that we send, if the peer allows it: some peers open their window by one frame for each message,
#: so a message of one frame must do. The output of a connection may exceed its high-water mark by one frame.
MAX_OUTGOING_FRAME = 1024 * 1024
_MAX_OUTGOING_FRAME: Final[Py_ssize_t] = MAX_OUTGOING_FRAME


class Connection(ConnectionPort):
    """The engine's side of one connection; its holder reads ``events`` and sends ``out``.

    ``local_open`` is the open that we send, ``sasl`` the layer below AMQP or None.
    """

    __slots__ = (
        "limits",
        "local_open",
        "remote_open",
        "open_bytes",
        "state",
        "events",
        "oversize_error",
        "sasl",
        "failed",
        "has_more",
        "channels",
        "idle",
        "_reader",
        "_sessions_due",
        "_closed_reported",
        "_max_events",
        "_max_work",
        "_frequent",
        "_undecodable",
    )

    def __init__(
        self,
        limits: EngineLimits,
        local_open: Open,
        outbox: list[ConnectionPort],
        sasl: SaslLayer | None,
        server: bool,
        budget: Budget | None = None,
        frequent: FrequentFrames | None = None,
        owner: ConnectionOwner | None = None,
    ) -> None:
        """``owner`` serves the connection; the router's hub and links find it by the engine's connection.

        ``budget`` and ``frequent`` are those that it shares with others; None for its own.
        """
        super().__init__(outbox, budget or Budget(UNLIMITED))
        self.owner = owner
        self.limits = limits
        self.high_water = limits.high_water_bytes
        self.buffer_limit = limits.max_buffered_bytes
        if limits.max_buffered_bytes < UNLIMITED:
            self.overrun_limit = limits.max_buffered_bytes // limits.max_frame_bytes
        self.local_open = local_open
        #: The peer's open, and the bytes of it that are charged to the connection.
        self.remote_open: Open | None = None
        self.open_bytes: Py_ssize_t = 0
        self.state: ConnectionState = ConnectionState.START
        self.events: list[Event] = []
        #: ``receive_data`` has more input: it stopped because ``events`` held as many as it may, or for its work.
        self.has_more = False
        self.sasl = sasl
        #: The error of the close that a too large message causes; None if only its link ends.
        self.oversize_error: Error | None = None
        #: A fault ended the connection: further input is discarded.
        self.failed = False
        self._reader = FrameReader(limits.max_sasl_frame_bytes)  # until the AMQP header has come
        self.channels = Channels(limits.channel_max)
        self.idle = IdleTimeouts(limits.idle_timeout_s)
        self._sessions_due: list[Session] = []
        self._closed_reported = False
        self._max_events: Py_ssize_t = self.limits.max_events
        self._max_work: Py_ssize_t = self.limits.max_work
        self._frequent: FrequentFrames = frequent or FrequentFrames()
        self._undecodable: c_int = int(limits.undecodable_states)
        if sasl is not None:
            sasl.read_from(self, self._reader)
        if not server:
            if sasl is None:
                self._send_header()
            else:
                sasl.send_first_frame()

    # --- commands

    def open(self) -> None:
        """Send our open, and our header if that is still due; do nothing if the open was sent or is too late."""
        self._send_header()
        if (self.state, ConnectionStep.SEND_OPEN) in CONNECTION_NEXT:
            self._advance_state(ConnectionStep.SEND_OPEN)
            self._append_frame(0, self.local_open)

    def forget_open(self) -> None:
        """Drop our open, which was sent and which the holder reads no more."""
        self.local_open = _SENT_OPEN

    def replace_limits(self, limits: EngineLimits, local_open: Open) -> None:
        """Replace limits and open before the open is sent, also for sessions that the peer has begun; Misuse."""
        if (self.state, ConnectionStep.SEND_OPEN) not in CONNECTION_NEXT:
            raise Misuse("our open has been sent")
        self.limits = limits
        self.local_open = local_open
        self.high_water = limits.high_water_bytes
        self.idle.local_timeout_s = limits.idle_timeout_s
        if self.remote_open is None:
            self.channels.channel_max = limits.channel_max
        self._reader.max_frame_bytes = limits.max_frame_bytes
        for session in self.sessions():
            session.replace_limits(limits)

    def close(self, error: Error | None = None) -> None:
        """Send our close after everything gathered; do nothing if it was sent before or cannot be sent."""
        if self.state in _UNANSWERED:
            self.open()
        step = ConnectionStep.SEND_CLOSE if error is None else ConnectionStep.SEND_CLOSE_ERROR
        if (self.state, step) in CONNECTION_NEXT:
            self.flush()
            self._advance_state(step)
            self._append_frame(0, Close(error))
            self._silence_sessions()

    def add_session(self) -> Session:
        """Return a new session of ours on a free channel, before its begin; Misuse if the peer allows no more."""
        return self.channels.add_session(self, self.limits, self._sessions_due)

    def drop_session(self, session: Session) -> None:
        """Forget a session that was reported as ended, and its links, once both sides have ended it."""
        session.reported = False
        self._drop_ended(session)

    def _drop_ended(self, session: Session) -> None:
        """Forget a session that both sides have ended, unless its holder has yet to drop it."""
        if self.channels.forget_ended(session):
            self.link_count -= len(session.links.by_handle)
            self.promised_bytes -= session.windows.promised_bytes
            session.drop_references()

    def drop_references(self) -> None:
        """Drop every reference to the holder, which is done with the connection and its links.

        The connection is then freed at once, without the garbage collector. Nothing is written or reported any more.
        """
        self._silence_sessions()
        self.failed = True
        self.touched = True  # so that no caller asks for a flush
        while self.channels.forget_sessions(1024):
            pass
        self._sessions_due.clear()
        self.events.clear()
        self.sasl = None
        self.owner = None
        self._count_kept_bytes(-self.kept_bytes)

    def _count_kept_bytes(self, count: int) -> None:
        """Count ``count`` bytes more of the peer's open as kept."""
        self.kept_bytes += count
        self.buffered_bytes += count

    @property
    def session_count(self) -> int:
        """Number of sessions that are not ended on both sides."""
        return len(self.channels.by_channel)

    def sessions(self) -> list[Session]:
        """Return every session that is not ended on both sides."""
        return self.channels.list_sessions()

    def write(self, channel: c_int, performative: Performative) -> None:
        """Write a frame with ``performative`` and no payload, unless a close was sent or received."""
        if not self.silent:
            self._append_frame(channel, performative)

    def _append_frame(self, channel: c_int, performative: Performative) -> None:
        encoded = frame(channel, encode_performative(performative))
        remote = self.remote_open
        if remote is not None and len(encoded) > remote.max_frame_size and performative is not self.local_open:
            name = NAMES[performative.descriptor]
            self.end_for_fault(PeerFault(Fault.FRAME_SIZE_TOO_SMALL, performative=name, size=remote.max_frame_size))
            return
        self.out += encoded
        self.touch()

    def report(self, event: Event) -> None:
        """Add ``event`` to the events for the holder."""
        self.events.append(event)

    def _report_closed(self, event: ConnectionClosed) -> None:
        """Report that the connection is over, once."""
        if not self._closed_reported:
            self._closed_reported = True
            self.report(event)

    def flush(self) -> None:
        """Write the dispositions and flows that the pass gathered."""
        self.touched = False
        if self._sessions_due:
            due = self._sessions_due[:]
            self._sessions_due.clear()
            for each in due:
                session: Session = each
                session.flush()
            self.touched = False

    def resume_output(self) -> None:
        """Resume paused links: the output is below its low-water mark."""
        self.paused = False
        self.channels.resume_sessions()

    @property
    def is_overrun(self) -> bool:
        """True if the peer has overrun a session's window, and is not to be read until that opens again.

        Only if nothing that the peer may send could open it. A peer that receives could: with credit, an outcome or a
        window for what waits. So could one with several links: with the rest of a message behind which others wait.
        """
        if self.overrun_frames == 0:
            return False
        count, unfinished = 0, False
        for session in self.sessions():
            for link in session.links.by_handle.values():
                if not link.incoming:
                    return False
                count += 1
                unfinished = unfinished or link.partial is not None
        return count == 1 or not unfinished

    @property
    def finished(self) -> bool:
        """True if both sides closed, or input is ignored from now on: only ``out`` is left to write."""
        return self.failed or self.state is ConnectionState.END or (self.sasl is not None and self.sasl.refused)

    @property
    def closed_by_both(self) -> bool:
        """True if both sides sent their close, neither for a fault in what came: the peer may send no more."""
        return self.state is ConnectionState.END and not self.failed

    # --- faults

    def end_for_fault(self, fault: PeerFault) -> None:
        """End the connection for ``fault``; send the reason in a close even before the opens were exchanged."""
        if self.sasl is not None and not self.sasl.done:
            self.sasl.end_broken()
        elif self.state not in CLOSING and fault.fault is not Fault.TLS_NOT_CONFIGURED:
            self._send_header_and_open()
            self.close(Error(fault.condition, fault.text))
        self.failed = True
        self._report_closed(ConnectionClosed(None, fault))
        self._silence_sessions()

    def _send_header_and_open(self) -> None:
        """Send the header and the open that must precede a close."""
        if self.state is ConnectionState.START:
            self._advance_state(ConnectionStep.RECEIVE_HEADER)
        self._send_header()
        if (self.state, ConnectionStep.SEND_OPEN) in CONNECTION_NEXT:
            self.open()

    def _silence_sessions(self) -> None:
        """Stop all sessions; the holder still clears away their links."""
        self.silent = True
        self.channels.silence_sessions()

    def _fail_below(self, session: Session, link: Link | None, fault: PeerFault) -> None:
        """End a link or a session for ``fault``, after the frames of ours that must precede that.

        A message that is too large may end the connection: then only the close carries the error, because clients
        report the first error that they read.
        """
        self._send_header_and_open()
        session.begin()
        error = Error(fault.condition, fault.text)
        if link is not None:
            closes = fault.fault is Fault.MESSAGE_SIZE and self.oversize_error is not None
            link.detach(True, None if closes else error)
            link.reported = True
            self.report(LinkDetached(link, True, None, fault))
            if closes:
                self.close(self.oversize_error)
        else:
            session.end(error)
            self._report_ended(SessionEnded(session, None, fault))

    def _report_ended(self, event: SessionEnded) -> None:
        """Report that a session is over; it stays among the sessions until the holder drops it."""
        event.session.reported = True
        self.report(event)

    # --- time

    def tick(self, now_s: float) -> None:
        """Send an empty frame if nothing else was sent; close a connection that was silent for too long (2.4.5)."""
        if self.state is not ConnectionState.OPENED:
            return
        if self.idle.remote_timeout_s > 0 and not self.wrote:
            self.out += _HEARTBEAT
            self.touch()
        self.wrote = False
        if self.is_overrun:
            self.idle.received = True  # it may well have sent something
        if self.idle.is_peer_silent(now_s):
            self.end_for_fault(PeerFault(Fault.IDLE_TIMEOUT))

    # --- small steps

    def _advance_state(self, step: ConnectionStep) -> None:
        self.state = advance(CONNECTION_NEXT, self.state, step)

    def _send_header(self) -> None:
        if (self.state, ConnectionStep.SEND_HEADER) in CONNECTION_NEXT:
            self._advance_state(ConnectionStep.SEND_HEADER)
            self.out += AMQP_HEADER
            self.touch()

    # --- what the peer sends

    def receive_data(self, data: bytes) -> None:
        """Work through ``data`` and the whole frames that it completes; a fault of the peer never raises.

        Once ``events`` holds ``limits.max_events``, or after ``limits.max_work``, the rest waits. While ``has_more``,
        the holder handles the events and calls again with no data, so that a peer whose frames cost more than their
        octets takes turns with the others.
        """
        self.has_more = False
        self.work = 0
        if self.finished:
            return
        reader: FrameReader = self._reader
        events: list[Event] = self.events
        reader.add_bytes(data)
        try:
            if not self._is_ready():
                return
            while reader.next_frame():
                self.idle.received = True
                if reader.frame_type != 0:
                    raise PeerFault(Fault.FRAME_TYPE, frame_type=reader.frame_type, due="AMQP")
                if reader.end > reader.start:
                    self._receive_frame(reader)
                    if self.work >= self._max_work or len(events) >= self._max_events:
                        self.has_more = not self.finished
                        return
        except PeerFault as fault:
            self.end_for_fault(fault)
        except FramingError as error:
            self.end_for_fault(PeerFault(Fault.FRAMING, detail=str(error)))
        except DecodeError as error:
            self.end_for_fault(PeerFault(Fault.DECODE, detail=str(error)))
        except IllegalStep as error:
            self.end_for_fault(PeerFault(Fault.ILLEGAL_CONNECTION_STEP, detail=f"peer: {error}"))

    def _is_ready(self) -> bool:
        """Return whether frames of AMQP may be read: SASL is done and the header has come."""
        sasl = self.sasl
        if sasl is not None and not sasl.done and not sasl.process_frames():
            return False
        return self.remote_open is not None or self.state not in _BEFORE_HEADER or self._receive_header()

    def _receive_header(self) -> bool:
        """Read the protocol header; return False while it is incomplete; PeerFault if it is another (2.2)."""
        if not take_amqp_header(self._reader):
            return False
        self._reader.max_frame_bytes = min(self.limits.max_frame_bytes, self.limits.max_open_frame_bytes)
        self._advance_state(ConnectionStep.RECEIVE_HEADER)
        self._send_header()
        return True

    def _receive_frame(self, reader: FrameReader) -> None:
        data: bytes = reader.data
        code: c_int = read_descriptor(data, reader.start, reader.end)
        if code == _TRANSFER or code == _DISPOSITION or code == _FLOW:
            session: Session | None = self.channels.last_session
            if session is None or session.remote_channel != reader.channel:
                session = self.channels.by_remote_channel.get(reader.channel)
                if session is None:
                    self._no_session(reader.channel, code)
                    return
                self.channels.last_session = session
            if session.silent:
                return  # our end was sent: what the peer sent before it read that is ignored (2.5.5)
            try:
                if code == _TRANSFER:
                    transfer: TransferReader = self._frequent.transfer
                    transfer.undecodable = self._undecodable
                    transfer.parse(data, reader.start, reader.end)
                    session.admit_transfer(transfer.handle).receive_transfer(transfer, data, reader.end)
                elif code == _DISPOSITION:
                    self.work += 1
                    disposition: DispositionReader = self._frequent.disposition
                    disposition.undecodable = self._undecodable
                    disposition.parse(data, reader.start, reader.end)
                    session.deliveries.receive_disposition(disposition)
                else:
                    self.work += 4
                    flow: FlowReader = self._frequent.flow
                    flow.parse(data, reader.start, reader.end)
                    session.receive_flow(flow)
            except PeerFault as fault:
                if fault.scope is Scope.CONNECTION:
                    raise
                handle = self._frequent.transfer.handle  # no other frame fails its link
                link = session.links.by_remote_handle.get(handle) if fault.scope is Scope.LINK else None
                self._fail_below(session, link, fault)
            return
        self._receive_control(reader.channel, code, data, reader.start, reader.end)

    def _no_session(self, channel: c_int, code: c_int) -> None:
        """Raise PeerFault for a frame on a channel without a session; ignore it if our close was sent (2.4.6)."""
        if self.state in CLOSING:
            return
        name = NAMES.get(code, "frame")
        if self.remote_open is None:
            raise PeerFault(Fault.NOT_OPEN, performative=name)
        raise PeerFault(Fault.CHANNEL_UNMAPPED, performative=name, channel=channel)

    def _receive_control(self, channel: c_int, code: c_int, data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> None:
        if code not in NAMES:
            raise PeerFault(Fault.UNKNOWN_PERFORMATIVE, code=hex(code) if code >= 0 else "outside the standard")
        limits = self.limits
        nodes = limits.max_attach_nodes if code == _ATTACH else limits.max_open_nodes if code == _OPEN else MAX_NODES
        performative = decode_performative(data, start, end, nodes)[0]
        if isinstance(performative, Open):
            self._receive_open(performative)
        elif isinstance(performative, Close):
            self._receive_close(performative)
        elif self.state in CLOSING:
            return
        elif self.remote_open is None:
            raise PeerFault(Fault.NOT_OPEN, performative=NAMES[code])
        elif channel > self.limits.channel_max:
            raise PeerFault(Fault.CHANNEL_MAX, channel=channel, channel_max=self.limits.channel_max)
        elif isinstance(performative, Begin):
            self._receive_begin(channel, performative)
        else:
            self._receive_in_session(channel, code, performative)

    def _receive_open(self, remote: Open) -> None:
        first = self.state is ConnectionState.HEADERS_EXCHANGED
        if first and not remote.container_id and self.limits.requires_container_id:
            raise PeerFault(Fault.CONTAINER_ID)  # a router that only answers may stay nameless
        if remote.max_frame_size < 512:
            raise PeerFault(Fault.MAX_FRAME_SIZE, size=remote.max_frame_size)
        if len(remote.container_id.encode()) > self.limits.max_name_bytes:
            raise PeerFault(Fault.CONTAINER_ID_SIZE, limit=self.limits.max_name_bytes)
        kept_bytes = charged_bytes(remote)
        if kept_bytes > self.buffer_limit - self.buffered_bytes:
            raise PeerFault(Fault.BUFFERED, limit=self.buffer_limit)
        self._advance_state(ConnectionStep.RECEIVE_OPEN)
        self._count_kept_bytes(kept_bytes)
        self.open_bytes = kept_bytes
        self._reader.max_frame_bytes = self.limits.max_frame_bytes
        self.remote_open = remote
        self.channels.channel_max = remote.channel_max
        self.idle.remote_timeout_s = (remote.idle_time_out or 0) / 1000
        self.remote_max_frame_bytes = min(remote.max_frame_size, _MAX_OUTGOING_FRAME)
        if self.state not in CLOSING:
            self.report(ConnectionOpened(remote))

    def _receive_close(self, close: Close) -> None:
        self._advance_state(ConnectionStep.RECEIVE_CLOSE)
        self._report_closed(ConnectionClosed(close.error))
        self._silence_sessions()

    def _receive_begin(self, channel: c_int, begin: Begin) -> None:
        if channel in self.channels.by_remote_channel:
            raise PeerFault(Fault.CHANNEL_IN_USE, channel=channel)
        if begin.remote_channel is None:
            try:
                session = self.add_session()
            except Misuse:
                raise PeerFault(Fault.CHANNEL_MAX, channel=channel, channel_max=self.channels.channel_max) from None
        else:
            answered = self.channels.by_channel.get(begin.remote_channel)
            if answered is None or answered.state not in _BEGIN_DUE or answered.remote_channel >= 0:
                raise PeerFault(Fault.REMOTE_CHANNEL, channel=begin.remote_channel)
            session = answered
        self.channels.map_remote_channel(channel, session)
        session.receive_begin(begin)
        if session.state not in _ENDING:
            self.report(SessionBegun(session, begin))

    def _receive_in_session(self, channel: c_int, code: c_int, performative: Performative) -> None:
        session = self.channels.by_remote_channel.get(channel)
        if session is None:
            self._no_session(channel, code)
            return
        if isinstance(performative, End):
            self.channels.release_remote_channel(channel)
            ours_first = session.state in _ENDING
            session.receive_end()
            if ours_first:
                self._drop_ended(session)
            else:
                self._report_ended(SessionEnded(session, performative.error))
            return
        if session.state in _ENDING:
            return
        try:
            if isinstance(performative, Attach):
                link = receive_attach(session, performative)
                if link.state not in DETACHING:
                    self.report(LinkAttached(link, performative))
            elif isinstance(performative, Detach):
                detached = receive_detach(session, performative)
                if detached is not None:
                    self.report(detached)
        except PeerFault as fault:
            if fault.scope is not Scope.SESSION:
                raise
            self._fail_below(session, None, fault)


_SENT_OPEN = Open(container_id="")
_HEARTBEAT = frame(0, b"", FRAME_AMQP)
_UNANSWERED = frozenset((ConnectionState.OPEN_RECEIVED, ConnectionState.OPEN_CLOSE_RECEIVED))
CLOSING = frozenset(
    (
        ConnectionState.CLOSE_PIPE,
        ConnectionState.OPEN_CLOSE_PIPE,
        ConnectionState.OPEN_CLOSE_RECEIVED,
        ConnectionState.CLOSE_SENT,
        ConnectionState.CLOSE_RECEIVED,
        ConnectionState.DISCARDING,
        ConnectionState.END,
    )
)
_BEFORE_HEADER = frozenset(
    (ConnectionState.START, ConnectionState.HEADER_SENT, ConnectionState.OPEN_PIPE, ConnectionState.OPEN_CLOSE_PIPE)
)
_BEGIN_DUE = frozenset((SessionState.BEGIN_SENT, SessionState.END_SENT, SessionState.DISCARDING))
_ENDING = frozenset((SessionState.END_SENT, SessionState.DISCARDING))
