"""The other end of a connection, written byte by byte: it sends what a test chooses, valid or not.

Its ids start just below the wrap, so every conversation of these tests crosses the wrap.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.routers import DEADLINE_S
from trouter.wire.framing import AMQP_HEADER, SASL_HEADER, frame
from trouter.wire.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Performative,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    Source,
    Target,
    Transfer,
    decode_performative,
    encode_performative,
)

FIRST_ID = 0xFFFFFFFC
MASK = 0xFFFFFFFF
WIDE = 0x3FFFFFFF
P = TypeVar("P", bound=Performative)


def connected(host: str, port: int, receive_buffer: int = 0) -> socket.socket:
    """Return a connected socket on which each operation has a deadline."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.settimeout(DEADLINE_S)
    sock.connect((host, port))
    return sock


class Gone(AssertionError):
    """The router closed the socket."""


@dataclass(slots=True)
class Link:
    handle: int
    remote_handle: int
    address: Any
    credit: int = 0
    delivery_count: int = 0


class Peer:
    """A connection; with ``opened`` it exchanges opens and begins a session on channel 0."""

    def __init__(
        self,
        port: int,
        host: str = "127.0.0.1",
        *,
        opened: bool = True,
        sasl: bool = False,
        incoming_window: int = WIDE,
        receive_buffer: int = 0,
        wire: Any = None,
        **open_fields: Any,
    ) -> None:
        """Connect; ``wire`` replaces the socket, and must have a socket's methods."""
        self.sock = connected(host, port, receive_buffer) if wire is None else wire
        self.address = "{}:{}".format(*self.sock.getsockname()[:2])
        self.payload = b""
        self.remote_open: Open | None = None
        self._input = bytearray()
        self._ahead: list[tuple[int, Performative | None, bytes]] = []
        self._links: dict[int, Link] = {}
        self._next_handle = 0
        self._next_delivery = FIRST_ID
        self._next_outgoing = FIRST_ID
        self._next_incoming = 0
        self._window_end = 0
        self.window = 0
        if sasl:
            self.authenticate("ANONYMOUS", b"")
        if opened:
            self.open(**open_fields)
            self.begin(incoming_window)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sock.close()

    @property
    def number(self) -> int:
        """Return the connection's number in the router's log."""
        assert self.remote_open is not None
        assert self.remote_open.properties is not None
        return int(self.remote_open.properties["qd.conn-id"])

    # --- output

    def raw(self, octets: bytes) -> None:
        self.sock.sendall(octets)

    def say(self, performative: Performative, payload: bytes = b"", channel: int = 0, frame_type: int = 0) -> None:
        self.raw(frame(channel, encode_performative(performative) + payload, frame_type))

    def begin_sasl(self) -> tuple[str, ...]:
        """Begin the SASL layer; return the mechanisms that the router offers."""
        self.raw(SASL_HEADER)
        self.expect_header(SASL_HEADER)
        return self.expect(SaslMechanisms).sasl_server_mechanisms

    def authenticate(self, mechanism: str, response: bytes | None) -> int:
        """Go through the SASL layer; return the code of its outcome."""
        self.begin_sasl()
        self.say(SaslInit(mechanism, response), frame_type=1)
        return self.expect(SaslOutcome).code

    def open(self, **fields: Any) -> Open:
        """Exchange headers and opens; return the router's open."""
        self.raw(AMQP_HEADER)
        self.say(Open(**{"container_id": "peer", **fields}))
        self.expect_header(AMQP_HEADER)
        self.remote_open = self.expect(Open)
        return self.remote_open

    def begin(self, incoming_window: int = WIDE, channel: int = 0) -> Begin:
        """Begin a session; return the router's begin."""
        self.say(
            Begin(next_outgoing_id=self._next_outgoing, incoming_window=incoming_window, outgoing_window=WIDE),
            channel=channel,
        )
        begin = self.expect(Begin)
        self._next_incoming = begin.next_outgoing_id
        self._window_end = (self._next_incoming + incoming_window) & MASK
        self.window = begin.incoming_window
        return begin

    def attach(self, attach: Attach) -> Attach:
        """Attach a link; return the router's answer."""
        self.say(attach)
        return self.expect(Attach)

    def attach_sender(self, address: str | None, credit: bool = True, **fields: Any) -> Link:
        """Attach a link to send on; with ``credit`` wait until it has some."""
        handle = self._free_handle()
        answer = self.attach(
            Attach(
                f"to-{address}-{handle}",
                handle,
                False,
                source=Source(),
                target=Target(address),
                initial_delivery_count=0,
                **fields,
            )
        )
        link = self._links[answer.handle] = Link(handle, answer.handle, getattr(answer.target, "address", None))
        while credit and link.credit == 0:
            self.take_flow(self.expect(Flow))
        return link

    def attach_receiver(self, address: str | None, credit: int = 0, dynamic: bool = False, **fields: Any) -> Link:
        """Attach a link to receive on."""
        handle = self._free_handle()
        source = Source(address, dynamic=dynamic)
        answer = self.attach(Attach(f"from-{address}-{handle}", handle, True, source=source, target=Target(), **fields))
        link = self._links[answer.handle] = Link(handle, answer.handle, getattr(answer.source, "address", None))
        link.delivery_count = answer.initial_delivery_count or 0
        if credit:
            self.grant(link, credit)
        return link

    def _free_handle(self) -> int:
        self._next_handle += 1
        return self._next_handle - 1

    def flow(self, **fields: Any) -> None:
        self.say(
            Flow(
                next_incoming_id=self._next_incoming,
                incoming_window=(self._window_end - self._next_incoming) & MASK,
                next_outgoing_id=self._next_outgoing,
                outgoing_window=WIDE,
                **fields,
            )
        )

    def grant(self, link: Link, credit: int, **fields: Any) -> None:
        """Set the credit of a link that the router sends on."""
        self.flow(handle=link.handle, delivery_count=link.delivery_count, link_credit=credit, **fields)

    def open_window(self, frames: int) -> None:
        """Let the router send ``frames`` more transfer frames."""
        self._window_end = (self._window_end + frames) & MASK
        self.flow()

    def transfer(
        self, link: Link, octets: bytes, *, more: bool = False, settled: bool = False, first: bool = True
    ) -> int:
        """Send one transfer frame; return the delivery's id."""
        delivery = self._next_delivery
        self._next_outgoing = (self._next_outgoing + 1) & MASK
        self.window -= 1
        if first:
            link.credit -= 1
            self.say(Transfer(link.handle, delivery, delivery.to_bytes(4, "big"), 0, settled, more), octets)
        else:
            self.say(Transfer(link.handle, more=more), octets)
        if not more:
            self._next_delivery = (self._next_delivery + 1) & MASK
        return delivery

    def send_message(self, link: Link, body: bytes, settled: bool = False) -> int:
        """Send a message with ``body`` as its data section, in as many frames as needed; return the delivery's id."""
        octets = message(body)
        pieces = [octets[at : at + 16_000] for at in range(0, len(octets), 16_000)]
        delivery = 0
        for number, piece in enumerate(pieces):
            more = number < len(pieces) - 1
            delivery = self.transfer(link, piece, more=more, settled=settled, first=number == 0)
        return delivery

    def accept(self, first: int, last: int | None = None) -> None:
        self.say(Disposition(True, first, last, True, Accepted()))

    def be_heard(self) -> None:
        """Return when the router has processed everything sent so far."""
        self.flow(echo=True)
        self.take_flow(self.expect(Flow))

    # --- input

    def expect_header(self, header: bytes) -> None:
        while len(self._input) < 8:
            self._read()
        assert bytes(self._input[:8]) == header
        del self._input[:8]

    def expect(self, kind: type[P]) -> P:
        """Return the next performative, which must be of this kind; apply flows and skip empty frames before it."""
        while True:
            performative = self.next()
            if isinstance(performative, kind):
                return performative
            if isinstance(performative, Flow):
                self.take_flow(performative)
            elif performative is not None:
                raise AssertionError(f"{performative} instead of {kind.__name__}")

    def next(self) -> Performative | None:
        """Return the performative of the next frame, None for an empty one; raise Gone at the end of the stream."""
        size = 0
        while len(self._input) < 8 or len(self._input) < (size := int.from_bytes(self._input[:4], "big")):
            self._read()
        whole = bytes(self._input[:size])
        del self._input[:size]
        start = whole[4] * 4
        if start == size:
            return None
        performative, end = decode_performative(whole, start, size)
        self.payload = whole[end:]
        if isinstance(performative, Transfer):
            self._next_incoming = (self._next_incoming + 1) & MASK
        return performative

    def _read(self) -> None:
        try:
            octets = self.sock.recv(262_144)
        except ConnectionResetError:
            octets = b""
        if not octets:
            raise Gone("the router closed the socket")
        self._input += octets

    def take_flow(self, flow: Flow) -> None:
        """Apply the window and the credit of a flow of the router."""
        if flow.next_incoming_id is not None:
            self.window = (flow.next_incoming_id + flow.incoming_window - self._next_outgoing) & MASK
        link = self._links.get(-1 if flow.handle is None else flow.handle)
        if link is not None and flow.link_credit is not None:
            link.credit = flow.link_credit

    def take_message(self, link: Link) -> bytes:
        """Return the bytes of the next message, and accept it."""
        transfer = self.expect(Transfer)
        assert transfer.handle == link.remote_handle
        first = transfer.delivery_id
        assert first is not None
        octets = self.payload
        while transfer.more:
            transfer = self.expect(Transfer)
            octets += self.payload
        link.delivery_count = (link.delivery_count + 1) & MASK
        assert not transfer.aborted
        self.accept(first)
        return octets

    def expect_outcome(self, delivery: int) -> object:
        """Return the settled outcome of a delivery of this peer."""
        disposition = self.expect(Disposition)
        assert disposition.role is True
        assert disposition.settled
        last = disposition.first if disposition.last is None else disposition.last
        assert (disposition.first, last) == (delivery, delivery)
        return disposition.state

    def expect_close(self) -> Error | None:
        """Answer the router's close, and check that the stream ends; return the error of the close."""
        error = self.expect(Close).error
        self.say(Close())
        self.expect_end_of_stream()
        return error

    def expect_session_end(self) -> Error | None:
        error = self.expect(End).error
        self.say(End())
        return error

    def expect_detach(self) -> Error | None:
        detach = self.expect(Detach)
        assert detach.closed
        return detach.error

    def expect_end_of_stream(self) -> None:
        """Check that only empty frames come before the end of the stream."""
        try:
            while (performative := self.next()) is None:
                pass
        except Gone:
            return
        raise AssertionError(f"{performative} instead of the end")


def message(body: bytes) -> bytes:
    """Return a message of one data section."""
    return b"\0\x53\x75\xb0" + len(body).to_bytes(4, "big") + body


def body_of(octets: bytes) -> bytes:
    """Return the data of such a message."""
    assert octets[:4] == b"\0\x53\x75\xb0"
    assert int.from_bytes(octets[4:8], "big") == len(octets) - 8
    return octets[8:]
