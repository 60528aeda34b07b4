"""One connection without a socket: bytes in, events and bytes out (AMQP 1.0 part 2, 2.2-2.4).

``receive_data`` takes the bytes of one read and works through every whole frame. Transfers, dispositions and flows go
to the links' sinks at once; rarer frames become ``events``. ``flush`` then writes what was gathered; the bytes to send
are in ``out``. Nothing that the peer sends raises: a fault is answered as its row in ``faults`` says, and reported as
an event.
"""

from __future__ import annotations

from trouter._text import visible_bytes
from trouter.wire.constants import MAX_NODES
from trouter.wire.errors import DecodeError
from trouter.wire.framing import AMQP_HEADER, TLS_HEADER, FrameReader, FramingError
from trouter.wire.performatives import Attach, Begin, Close, Detach, End, Open, Performative, decode_performative
from trouter.wire.transfers import DispositionReader, FlowReader, TransferReader, read_descriptor

from .attaches import charged_bytes, drop_unread
from .connection_base import CLOSING, NAMES, ConnectionBase
from .events import ConnectionClosed, ConnectionOpened, LinkAttached, LinkDetached, SessionBegun, SessionEnded
from .faults import Fault, Misuse, PeerFault, Scope
from .link import receive_attach
from .refused import RefusedLink
from .session import Session
from .states import ConnectionState, ConnectionStep, IllegalStep, LinkState, SessionState

_OPEN = 0x10
_ATTACH = 0x12
_TRANSFER = 0x14
_FLOW = 0x13
_DISPOSITION = 0x15
_MAX_OUTGOING_FRAME = 65536


class Connection(ConnectionBase):
    """The engine's side of one connection; its holder reads ``events`` and sends ``out``.

    ``local_open`` is the open that we send, ``sasl`` the layer below AMQP or None.
    """

    __slots__ = ("_disposition", "_flow", "_max_events", "_transfer")

    def _prepare(self) -> None:
        self._max_events = self.limits.max_events
        self._transfer = TransferReader()
        self._disposition = DispositionReader()
        self._transfer.undecodable = self._disposition.undecodable = self.limits.undecodable_states
        self._flow = FlowReader()

    def receive_data(self, data: bytes) -> None:
        """Work through ``data`` and the whole frames that it completes; a fault of the peer never raises.

        Once ``events`` holds ``limits.max_events``, the rest waits. While ``has_more``, the holder handles the events
        and calls again with no data, so that a peer that sends only rare frames takes turns with the others.
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
            self._received = True
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
        """Read the protocol header; return False while it is incomplete, raise PeerFault if it is another (2.2)."""
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
        raise PeerFault(Fault.FRAMING, detail=f"{kind}: '{visible_bytes(seen)}'")

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
                return  # our end was sent: what the peer sent before it read that is ignored (2.5.5)
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
        """Raise PeerFault for a frame on a channel without a session; ignore it if our close was sent (2.4.6)."""
        if self.state in CLOSING:
            return
        name = NAMES.get(code, "frame")
        if self.remote_open is None:
            raise PeerFault(Fault.NOT_OPEN, performative=name)
        raise PeerFault(Fault.CHANNEL_UNMAPPED, performative=name, channel=channel)

    def _receive_control(self, channel: int, code: int, data: bytes, start: int, end: int) -> None:
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
        if not remote.container_id and self.state is ConnectionState.HEADERS_EXCHANGED:
            raise PeerFault(Fault.CONTAINER_ID)  # a peer that only answers may stay nameless: Proton's servers do
        if remote.max_frame_size < 512:
            raise PeerFault(Fault.MAX_FRAME_SIZE, size=remote.max_frame_size)
        if len(remote.container_id.encode()) > self.limits.max_name_bytes:
            raise PeerFault(Fault.CONTAINER_ID_SIZE, limit=self.limits.max_name_bytes)
        kept_bytes = charged_bytes(remote)
        if kept_bytes > self.buffer_limit - self.buffered_bytes:
            raise PeerFault(Fault.BUFFERED, limit=self.buffer_limit)
        self._step(ConnectionStep.RECEIVE_OPEN)
        self._keep(kept_bytes)
        self.open_bytes = kept_bytes
        self._reader.max_frame_bytes = self.limits.max_frame_bytes
        self.remote_open = remote
        self.remote_max_frame_bytes = min(remote.max_frame_size, _MAX_OUTGOING_FRAME)
        if self.state not in CLOSING:
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
        if not self.limits.whole_attaches:
            drop_unread(attach)
        link = receive_attach(session, attach)
        if link.state not in _DETACHING:
            self.report(LinkAttached(link, attach))

    def _receive_detach(self, session: Session, detach: Detach) -> None:
        link = session.links_by_remote_handle.get(detach.handle)
        if link is None:
            raise PeerFault(Fault.UNATTACHED_HANDLE, performative="detach", handle=detach.handle)
        if isinstance(link, RefusedLink):
            link.receive_detach(detach.handle)
            return
        ours_first = link.state in _DETACHING
        link.receive_detach(detach.closed)
        if link.awaited or not ours_first:
            self.report(LinkDetached(link, detach.closed, detach.error))


_BEFORE_HEADER = frozenset(
    (ConnectionState.START, ConnectionState.HEADER_SENT, ConnectionState.OPEN_PIPE, ConnectionState.OPEN_CLOSE_PIPE)
)
_BEGIN_DUE = frozenset((SessionState.BEGIN_SENT, SessionState.END_SENT, SessionState.DISCARDING))
_ENDING = frozenset((SessionState.END_SENT, SessionState.DISCARDING))
_DETACHING = frozenset((LinkState.DETACH_SENT, LinkState.DETACH_PIPE))
