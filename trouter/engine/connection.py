"""One peer's conversation, without a socket: bytes in, events and bytes out (AMQP 1.0 part 2, 2.2-2.4).

``receive_data`` takes what a read brought and works through every whole frame
of it: transfers, dispositions and flows reach the links' sinks directly, the
rare rest is left in ``events``. ``flush`` then writes what was gathered; the
octets to send stand in ``out``. Whatever the peer sends, nothing is raised: a
fault is answered as its row in ``faults`` says and reported as an event.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from trouter.wire.constants import MAX_ATTACH_NODES, MAX_NODES
from trouter.wire.errors import DecodeError
from trouter.wire.framing import AMQP_HEADER, FRAME_AMQP, TLS_HEADER, FrameReader, FramingError, frame
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
from trouter.wire.transfers import DispositionReader, FlowReader, TransferReader, read_descriptor

from .events import (
    ConnectionClosed,
    ConnectionOpened,
    Event,
    LinkAttached,
    LinkDetached,
    SessionBegun,
    SessionEnded,
)
from .faults import Fault, Misuse, PeerFault, Scope
from .limits import UNLIMITED, EngineLimits
from .link import Link, receive_attach
from .ports import Budget, ConnectionPort
from .sasl import SaslLayer
from .session import Session
from .states import (
    CONNECTION_NEXT,
    ConnectionState,
    ConnectionStep,
    IllegalStep,
    LinkState,
    SessionState,
    advance,
)

_OPEN = 0x10
_ATTACH = 0x12
_TRANSFER = 0x14
_FLOW = 0x13
_DISPOSITION = 0x15
_MAX_OUTGOING_FRAME = 65536
_NAMES = {0x10: "open", 0x11: "begin", 0x12: "attach", 0x13: "flow", 0x14: "transfer", 0x15: "disposition"}
_NAMES |= {0x16: "detach", 0x17: "end", 0x18: "close"}


class Connection(ConnectionPort):
    """Our end of a connection. ``local_open`` is what we introduce ourselves with, ``sasl`` the layer below or None."""

    __slots__ = (
        "_closed_told",
        "_disposition",
        "_flow",
        "_heard",
        "_heard_at_s",
        "_last_session",
        "_max_events",
        "_reader",
        "_sessions",
        "_sessions_due",
        "_spare_channels",
        "_transfer",
        "_turn",
        "events",
        "failed",
        "has_more",
        "limits",
        "local_open",
        "oversize_error",
        "remote_open",
        "sasl",
        "sessions_by_remote_channel",
        "state",
    )

    def __init__(
        self,
        limits: EngineLimits,
        local_open: Open,
        outbox: list[Any],
        sasl: SaslLayer | None,
        server: bool,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(outbox, budget or Budget(UNLIMITED))
        self.limits = limits
        self.high_water = limits.high_water_bytes
        self.buffer_limit = limits.max_buffered_bytes
        self.local_open = local_open
        self.remote_open: Open | None = None
        self.state = ConnectionState.START
        self.events: list[Event] = []
        self._max_events = limits.max_events
        #: Input waits that ``receive_data`` has not looked at, because ``events`` held as many as it may.
        self.has_more = False
        self.sasl = sasl
        #: What a message that is too large ends the connection with; None if it ends its link.
        self.oversize_error: Error | None = None
        #: A fault ended the connection: input is thrown away from here on.
        self.failed = False
        self._reader = FrameReader(limits.max_sasl_frame_bytes)  # until a header says that frames of AMQP come
        self._transfer = TransferReader()
        self._disposition = DispositionReader()
        self._transfer.undecodable = self._disposition.undecodable = limits.undecodable_states
        self._flow = FlowReader()
        self._sessions: dict[int, Session] = {}
        self.sessions_by_remote_channel: dict[int, Session] = {}
        self._spare_channels: list[int] = []
        self._sessions_due: list[Session] = []
        #: Counts how often sessions had to wait for room in the output.
        self._turn = 0
        #: The session of the last frame: the next one is likely its too. None whenever a channel loses its session.
        self._last_session: Session | None = None
        self._heard = False
        self._heard_at_s = -1.0
        self._closed_told = False
        if sasl is not None:
            sasl.attach_to(self, self._reader)
        if not server:
            if sasl is None:
                self._send_header()
            else:
                sasl.start()

    # --- commands

    def open(self) -> None:
        """Send our open (and our header, if that is still due); does nothing when it was sent before or is too late."""
        self._send_header()
        if (self.state, ConnectionStep.SEND_OPEN) in CONNECTION_NEXT:
            self._step(ConnectionStep.SEND_OPEN)
            self._put(0, self.local_open)

    def adopt(self, limits: EngineLimits, local_open: Open) -> None:
        """Go by other limits than we began with, and introduce ourselves accordingly; before our open was sent.

        Sessions that the peer has begun already go by them too.
        """
        if (self.state, ConnectionStep.SEND_OPEN) not in CONNECTION_NEXT:
            raise Misuse("our open has been sent")
        self.limits = limits
        self.local_open = local_open
        self.high_water = limits.high_water_bytes
        self._reader.max_frame_bytes = limits.max_frame_bytes
        for session in self._sessions.values():
            session.adopt(limits)

    def close(self, error: Error | None = None) -> None:
        """Send our close behind everything gathered so far; does nothing when it was sent before or cannot be."""
        if self.state in _UNANSWERED:
            self.open()
        step = ConnectionStep.SEND_CLOSE if error is None else ConnectionStep.SEND_CLOSE_ERROR
        if (self.state, step) in CONNECTION_NEXT:
            self.flush()
            self._step(step)
            self._put(0, Close(error))
            self._silence()

    def add_session(self) -> Session:
        """A session of ours on a free channel; call its ``begin``. Misuse when the peer allows no more."""
        channel = self._spare_channels[-1] if self._spare_channels else len(self._sessions)
        if channel > self._highest_channel():
            raise Misuse(f"the peer allows no channel above {self._highest_channel()}")
        if self._spare_channels:
            self._spare_channels.pop()
        session = Session(self, channel, self.limits, self._sessions_due)
        self._sessions[channel] = session
        return session

    def _highest_channel(self) -> int:
        return self.limits.channel_max if self.remote_open is None else self.remote_open.channel_max

    def drop_session(self, session: Session) -> None:
        """Forget a session that was reported as ended, and its links, as soon as both sides have ended it."""
        session.reported = False
        self._drop_ended(session)

    def _drop_ended(self, session: Session) -> None:
        """Forget a session that both sides have ended, unless its holder has yet to clear its links away."""
        ended = session.state is SessionState.UNMAPPED and not session.reported
        if ended and self._sessions.get(session.channel) is session:
            del self._sessions[session.channel]
            self._spare_channels.append(session.channel)
            self.link_count -= len(session.links_by_handle)
            self.promised_bytes -= session.promised_bytes
            session.forget()

    def forget(self) -> None:
        """The holder is done with the connection and its links: let go of all that refers back to it.

        So it goes at once and does not wait for the garbage collector. Nothing is written or reported any more.
        """
        self._silence()
        self.failed = True
        self.touched = True  # so that no caller asks for a flush
        while self.forget_sessions(1024):
            pass
        self._sessions_due.clear()
        self.events.clear()
        self.sasl = None
        self.owner = None

    def forget_sessions(self, count: int) -> bool:
        """Let go of up to ``count`` sessions, whose links the holder is done with; whether there are more."""
        sessions = self._sessions
        while sessions and count > 0:
            session = sessions.popitem()[1]
            self.sessions_by_remote_channel.pop(session.remote_channel, None)  # where it would wait for all the others
            session.forget()
            count -= 1
        return bool(sessions)

    @property
    def session_count(self) -> int:
        """How many sessions are not ended on both sides."""
        return len(self._sessions)

    def sessions(self) -> list[Session]:
        """Every session that is not ended on both sides."""
        return list(self._sessions.values())

    def write(self, channel: int, performative: Performative) -> None:
        """Write a frame with ``performative`` and nothing behind it, unless the conversation is over."""
        if not self.silent:
            self._put(channel, performative)

    def _put(self, channel: int, performative: Performative) -> None:
        octets = frame(channel, encode_performative(performative))
        remote = self.remote_open
        if remote is not None and len(octets) > remote.max_frame_size and performative is not self.local_open:
            name = _NAMES[performative.descriptor]
            self.fail(PeerFault(Fault.FRAME_SIZE_TOO_SMALL, performative=name, size=remote.max_frame_size))
            return
        self.out += octets
        self.touch()

    def report(self, event: Event) -> None:
        """Leave ``event`` for the holder."""
        self.events.append(event)

    def _report_closed(self, event: ConnectionClosed) -> None:
        """Say that it is over, once."""
        if not self._closed_told:
            self._closed_told = True
            self.report(event)

    def flush(self) -> None:
        """Write the dispositions and flows that the pass gathered."""
        self.touched = False
        if self._sessions_due:
            due = self._sessions_due[:]
            self._sessions_due.clear()
            for each in due:
                session = each
                session.flush()
            self.touched = False

    def resume_output(self) -> None:
        """The output went below its low-water mark: links that paused go on; sessions of one urgency take turns."""
        self.paused = False
        waiting = [session for session in self._sessions.values() if session.waiting_links]
        if len(waiting) > 1:
            self._turn = (self._turn + 1) % len(waiting)
            waiting = waiting[self._turn :] + waiting[: self._turn]
            waiting.sort(key=_URGENCY, reverse=True)
        for session in waiting:
            session.resume()

    @property
    def finished(self) -> bool:
        """Both closes went over, or what the peer sends is no longer of interest: only ``out`` is left to write."""
        return self.failed or self.state is ConnectionState.END or (self.sasl is not None and self.sasl.refused)

    # --- input

    def receive_data(self, data: bytes) -> None:
        """Work through ``data`` and whatever whole frames it completes. Never raises for what a peer sent.

        Once ``events`` holds ``limits.max_events`` the rest waits: while ``has_more``, the holder handles the events
        and calls again with no data, so that a peer whose frames are all rare ones takes turns with the others.
        """
        self.has_more = False
        if self.finished:
            return
        self._reader.feed(data)
        try:
            self._work()
        except PeerFault as fault:
            self.fail(fault)
        except FramingError as error:
            self.fail(PeerFault(Fault.FRAMING, detail=str(error)))
        except DecodeError as error:
            self.fail(PeerFault(Fault.DECODE, detail=str(error)))
        except IllegalStep as error:
            self.fail(PeerFault(Fault.ILLEGAL_CONNECTION_STEP, detail=f"peer: {error}"))

    def _work(self) -> None:
        sasl = self.sasl
        if sasl is not None and not sasl.done and not sasl.work():
            return
        if self.remote_open is None and not self._header_received() and not self._receive_header():
            return
        reader = self._reader
        events = self.events
        while reader.next_frame():
            self._heard = True
            if reader.frame_type != 0:
                raise PeerFault(Fault.FRAME_TYPE, frame_type=reader.frame_type, due="AMQP")
            if reader.end > reader.start:
                self._receive_frame(reader)
                if len(events) >= self._max_events:
                    self.has_more = not self.finished
                    return

    def _header_received(self) -> bool:
        return self.state not in _BEFORE_HEADER

    def _receive_header(self) -> bool:
        """Take the protocol header off the stream: False while it is incomplete; PeerFault when it is none."""
        seen = self._reader.peek(8)
        if seen == AMQP_HEADER:
            self._reader.take(8)
            self._reader.max_frame_bytes = min(self.limits.max_frame_bytes, self.limits.max_open_frame_bytes)
            self._step(ConnectionStep.RECEIVE_HEADER)
            self._send_header()
            return True
        if AMQP_HEADER.startswith(seen) or (TLS_HEADER.startswith(seen) and seen != TLS_HEADER):
            return False
        if seen == TLS_HEADER or seen[:2] == b"\x16\x03":
            raise PeerFault(Fault.TLS_NOT_CONFIGURED)
        known = seen.startswith(b"AMQP")
        kind = "Incompatible AMQP connection detected" if known else "Unknown protocol detected"
        raise PeerFault(Fault.FRAMING, detail=f"{kind}: '{_visible(seen)}'")

    def _receive_frame(self, reader: FrameReader) -> None:
        data = reader.data
        code = read_descriptor(data, reader.start, reader.end)
        if code == _TRANSFER or code == _DISPOSITION or code == _FLOW:
            session = self._last_session
            if session is None or session.remote_channel != reader.channel:
                session = self.sessions_by_remote_channel.get(reader.channel)
                if session is None:
                    self._no_session(reader.channel, code)
                    return
                self._last_session = session
            if session.silent:
                return  # our end was sent: what passes it on the way is not looked at (2.5.5)
            try:
                if code == _TRANSFER:
                    transfer = self._transfer
                    transfer.parse(data, reader.start, reader.end)
                    session.receive_transfer(transfer, data, reader.end)
                elif code == _DISPOSITION:
                    disposition = self._disposition
                    disposition.parse(data, reader.start, reader.end)
                    session.receive_disposition(disposition)
                else:
                    flow = self._flow
                    flow.parse(data, reader.start, reader.end)
                    session.receive_flow(flow)
            except PeerFault as fault:
                if fault.scope is Scope.CONNECTION:
                    raise
                link = session.links_by_remote_handle.get(self._transfer.handle) if fault.scope is Scope.LINK else None
                self._fail_below(session, link, fault)
            return
        self._receive_control(reader.channel, code, data, reader.start, reader.end)

    def _no_session(self, channel: int, code: int) -> None:
        """A frame for a channel without a session: late ones are let pass while our end waits for the peer's."""
        if self.state in _CLOSING:
            return
        name = _NAMES.get(code, "frame")
        if self.remote_open is None:
            raise PeerFault(Fault.NOT_OPEN, performative=name)
        raise PeerFault(Fault.CHANNEL_UNMAPPED, performative=name, channel=channel)

    def _receive_control(self, channel: int, code: int, data: bytes, start: int, end: int) -> None:
        if code not in _NAMES:
            raise PeerFault(Fault.UNKNOWN_PERFORMATIVE, code=hex(code) if code >= 0 else "outside the standard")
        nodes = MAX_ATTACH_NODES if code == _ATTACH else self.limits.max_open_nodes if code == _OPEN else MAX_NODES
        performative = decode_performative(data, start, end, nodes)[0]
        if isinstance(performative, Open):
            self._receive_open(performative)
        elif isinstance(performative, Close):
            self._receive_close(performative)
        elif self.state in _CLOSING:
            return
        elif self.remote_open is None:
            raise PeerFault(Fault.NOT_OPEN, performative=_NAMES[code])
        elif channel > self.limits.channel_max:
            raise PeerFault(Fault.CHANNEL_MAX, channel=channel, channel_max=self.limits.channel_max)
        elif isinstance(performative, Begin):
            self._receive_begin(channel, performative)
        else:
            self._receive_in_session(channel, code, performative)

    def _receive_open(self, remote: Open) -> None:
        if not remote.container_id and self.state is ConnectionState.HEADERS_EXCHANGED:
            raise PeerFault(Fault.CONTAINER_ID)  # who only answers may stay nameless: Proton's servers do
        if remote.max_frame_size < 512:
            raise PeerFault(Fault.MAX_FRAME_SIZE, size=remote.max_frame_size)
        if len(remote.container_id.encode()) > self.limits.max_name_bytes:
            raise PeerFault(Fault.CONTAINER_ID_SIZE, limit=self.limits.max_name_bytes)
        self._step(ConnectionStep.RECEIVE_OPEN)
        self._reader.max_frame_bytes = self.limits.max_frame_bytes
        self.remote_open = remote
        self.remote_max_frame_bytes = min(remote.max_frame_size, _MAX_OUTGOING_FRAME)
        if self.state not in _CLOSING:
            self.report(ConnectionOpened(remote))

    def _receive_close(self, close: Close) -> None:
        self._step(ConnectionStep.RECEIVE_CLOSE)
        self._report_closed(ConnectionClosed(close.error))
        self._silence()

    def _receive_begin(self, channel: int, begin: Begin) -> None:
        if channel in self.sessions_by_remote_channel:
            raise PeerFault(Fault.CHANNEL_IN_USE, channel=channel)
        if begin.remote_channel is None:
            try:
                session = self.add_session()
            except Misuse:
                raise PeerFault(Fault.CHANNEL_MAX, channel=channel, channel_max=self._highest_channel()) from None
        else:
            answered = self._sessions.get(begin.remote_channel)
            if answered is None or answered.state not in _BEGIN_DUE or answered.remote_channel >= 0:
                raise PeerFault(Fault.REMOTE_CHANNEL, channel=begin.remote_channel)
            session = answered
        session.remote_channel = channel
        self.sessions_by_remote_channel[channel] = session
        session.receive_begin(begin)
        if session.state not in _ENDING:
            self.report(SessionBegun(session, begin))

    def _receive_in_session(self, channel: int, code: int, performative: Performative) -> None:
        session = self.sessions_by_remote_channel.get(channel)
        if session is None:
            self._no_session(channel, code)
            return
        if isinstance(performative, End):
            del self.sessions_by_remote_channel[channel]
            self._last_session = None
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
                self._receive_attach(session, performative)
            elif isinstance(performative, Detach):
                self._receive_detach(session, performative)
        except PeerFault as fault:
            if fault.scope is not Scope.SESSION:
                raise
            self._fail_below(session, None, fault)

    def _receive_attach(self, session: Session, attach: Attach) -> None:
        link = receive_attach(session, attach)
        if link.state not in _DETACHING:
            self.report(LinkAttached(link, attach))

    def _receive_detach(self, session: Session, detach: Detach) -> None:
        link = session.links_by_remote_handle.get(detach.handle)
        if link is None:
            raise PeerFault(Fault.UNATTACHED_HANDLE, performative="detach", handle=detach.handle)
        ours_first = link.state in _DETACHING
        link.receive_detach(detach.closed)
        if link.awaited or not ours_first:
            self.report(LinkDetached(link, detach.closed, detach.error))

    # --- faults

    def fail(self, fault: PeerFault) -> None:
        """End the connection for ``fault``; even before the opens were exchanged, the peer hears why."""
        if self.sasl is not None and not self.sasl.done:
            self.sasl.fail()
        elif self.state not in _CLOSING and fault.fault is not Fault.TLS_NOT_CONFIGURED:
            self._introduce()
            self.close(Error(fault.condition, fault.text))
        self.failed = True
        self._report_closed(ConnectionClosed(None, fault))
        self._silence()

    def _introduce(self) -> None:
        """Send the header and the open that must stand before a close."""
        if self.state is ConnectionState.START:
            self._step(ConnectionStep.RECEIVE_HEADER)
        self._send_header()
        if (self.state, ConnectionStep.SEND_OPEN) in CONNECTION_NEXT:
            self.open()

    def _silence(self) -> None:
        """Nothing moves on any session any more; their links are the holder's to clear away."""
        self.silent = True
        self.sessions_by_remote_channel.clear()
        self._last_session = None
        for session in self._sessions.values():
            session.silence()

    def _fail_below(self, session: Session, link: Link | None, fault: PeerFault) -> None:
        """End a link or a session for ``fault``, behind whatever of ours has to stand before that.

        A message that is too large may end the connection: then the close alone says why, because clients report the
        first error that they read.
        """
        self._introduce()
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
        """Say that a session is over; it stays among the sessions until the holder drops it."""
        event.session.reported = True
        self.report(event)

    # --- time

    @property
    def tick_period_s(self) -> float:
        """How often ``tick`` wants to be called; 0 for never. Time-outs of a peer below 0.4 s are not kept."""
        periods = [self.limits.idle_timeout_s] if self.limits.idle_timeout_s > 0 else []
        if self.remote_open is not None and self.remote_open.idle_time_out:
            periods.append(max(_SHORTEST_TIMEOUT_S, self.remote_open.idle_time_out / 1000))
        return min(periods) / 4 if periods else 0.0

    def tick(self, now_s: float) -> None:
        """Send an empty frame if nothing else was sent, and close a connection that was silent for too long (2.4.5)."""
        if self.state is not ConnectionState.OPENED or self.remote_open is None:
            return
        if self.remote_open.idle_time_out and not self.wrote:
            self.out += _HEARTBEAT
            self.touch()
        self.wrote = False
        if self._heard or self._heard_at_s < 0:
            self._heard = False
            self._heard_at_s = now_s
        elif 0 < self.limits.idle_timeout_s <= now_s - self._heard_at_s:
            self.fail(PeerFault(Fault.IDLE_TIMEOUT))

    # --- small steps

    def _step(self, step: ConnectionStep) -> None:
        self.state = advance(CONNECTION_NEXT, self.state, step)

    def _send_header(self) -> None:
        if (self.state, ConnectionStep.SEND_HEADER) in CONNECTION_NEXT:
            self._step(ConnectionStep.SEND_HEADER)
            self.out += AMQP_HEADER
            self.touch()


def _visible(octets: bytes) -> str:
    r"""``octets`` as text: what is not printable ASCII as \xhh."""
    return "".join(chr(octet) if 32 <= octet < 127 else f"\\x{octet:02x}" for octet in octets)


_SHORTEST_TIMEOUT_S = 0.4
_HEARTBEAT = frame(0, b"", FRAME_AMQP)
_BEFORE_HEADER = frozenset(
    (ConnectionState.START, ConnectionState.HEADER_SENT, ConnectionState.OPEN_PIPE, ConnectionState.OPEN_CLOSE_PIPE)
)
_UNANSWERED = frozenset((ConnectionState.OPEN_RECEIVED, ConnectionState.OPEN_CLOSE_RECEIVED))
_CLOSING = frozenset(
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
_URGENCY = attrgetter("urgency")
_BEGIN_DUE = frozenset((SessionState.BEGIN_SENT, SessionState.END_SENT, SessionState.DISCARDING))
_ENDING = frozenset((SessionState.END_SENT, SessionState.DISCARDING))
_DETACHING = frozenset((LinkState.DETACH_SENT, LinkState.DETACH_PIPE))
