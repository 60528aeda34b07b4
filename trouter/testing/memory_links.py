"""Links of a client in memory, and the messages on them."""

from __future__ import annotations

from collections import deque
from typing import Any, Final, Protocol

from trouter.engine.events import LinkDetached
from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.engine.link_base import Link
from trouter.engine.ports import Delivery, LinkPort, LinkSink
from trouter.wire.codec import decode
from trouter.wire.constants import DATA
from trouter.wire.performatives import Accepted, Attach, Error, Source, Target, decode_state, encode_state
from trouter.wire.sections import MessageScan
from trouter.wire.types import Described

_AS_REQUESTED: Final = object()


class MemoryLinkOwner(Protocol):
    """The client of a link: ``memory.MemoryClient``."""

    stalled: bool
    dropped: bool

    def pump(self) -> None:
        """Carry bytes both ways until nothing moves."""

    def write(self) -> bool:
        """Carry the client's output to the router; return whether there was any."""

    def end(self) -> None:
        """End the client's session and pump."""

    def drop(self) -> None:
        """Break the connection."""


class ClientDelivery(Delivery):
    """The engine's delivery of a message, with what the test sees of it."""

    def __init__(self, link: LinkPort) -> None:
        super().__init__(link)
        self.sent: SentMessage | None = None
        self.received: ReceivedMessage | None = None


class _MemoryLink(LinkSink):
    """The common part of senders and receivers."""

    def __init__(self, client: MemoryLinkOwner, link: Link) -> None:
        self.client = client
        self.link = link
        link.sink = self
        #: The router's attach, and its detach once it has come.
        self.attach: Attach | None = None
        self.detached: LinkDetached | None = None

    def on_attached(self, attach: Attach) -> None:
        """Note the router's attach."""
        self.attach = attach

    def answer(self, source: object = _AS_REQUESTED, target: object = _AS_REQUESTED, **fields: Any) -> None:
        """Answer the router's attach with the termini that it requested, or with others; ``fields`` as in Attach."""
        attach = self.attach
        assert attach is not None  # noqa: S101 - it came
        self.link.attach(
            attach.source if source is _AS_REQUESTED else source,
            attach.target if target is _AS_REQUESTED else target,
            **fields,
        )

    def refuse(self, error: Error) -> None:
        """Refuse an attach of the router."""
        self.link.refuse(error)
        self.client.pump()

    @property
    def credit(self) -> int:
        """Messages that the sending end may still begin."""
        return self.link.credit

    @property
    def address(self) -> str:
        """The address in the router's attach, of its source if it sends; the router chose a dynamic one."""
        assert self.attach is not None  # noqa: S101 - asked for after the attach was answered
        terminus = self.attach.source if self.link.incoming else self.attach.target
        assert isinstance(terminus, Source | Target)  # noqa: S101 - as above
        return str(terminus.address)

    @property
    def error(self) -> Error | None:
        """The error of the router's detach, or None."""
        return None if self.detached is None else self.detached.error

    def detach(self, closed: bool = True, error: Error | None = None) -> None:
        """Detach the link and pump."""
        self.link.awaited = True
        self.link.detach(closed, error)
        self.client.pump()


class MemorySender(_MemoryLink):
    """A client's sending link; messages wait for credit, window and room."""

    link: OutgoingLink

    def __init__(self, client: MemoryLinkOwner, link: OutgoingLink) -> None:
        super().__init__(client, link)
        #: The credit left at each of the router's drains.
        self.drains: list[int] = []
        #: Answer drains at once.
        self.answers_drain = True
        self._waiting: deque[SentMessage] = deque()

    def send(
        self,
        message: bytes,
        *,
        settled: bool = False,
        frames: int = 1,
        abort: bool = False,
        state: object = None,
        message_format: int = 0,
    ) -> SentMessage:
        """Send a message in at least ``frames`` frames; with ``abort``, abort instead of completing it."""
        size = max(1, -(-len(message) // frames))
        pieces = [message[start : start + size] for start in range(0, len(message), size)] or [b""]
        sent = SentMessage(self, settled, state)
        sent.delivery.message_format = message_format
        for piece in pieces if abort else pieces[:-1]:
            sent.more(piece)
        if abort:
            sent.abort()
        else:
            sent.finish(pieces[-1])
        return sent

    def begin(self, piece: bytes = b"", *, settled: bool = False, state: object = None) -> SentMessage:
        """Begin a message; continue with ``more``, ``finish`` and ``abort`` of the result."""
        sent = SentMessage(self, settled, state)
        sent.more(piece)
        return sent

    def drained(self) -> None:
        """Answer a drain: give the rest of the credit back."""
        self.link.return_credit()

    def wait(self, sent: SentMessage) -> None:
        """Send the pending part of ``sent``, after those that wait before it."""
        if sent not in self._waiting:
            self._waiting.append(sent)
        self._push()

    def _push(self) -> None:
        while self._waiting and (self._waiting[0].delivery.begun or self.link.is_ready()) and not self.link.waiting:
            if not self._waiting[0].push():
                return
            self._waiting.popleft()

    def on_credit(self, link: Any) -> None:
        """See ``LinkSink``."""
        self._push()
        if link.drain and not self._waiting:
            self.drains.append(link.credit)
            if self.answers_drain:
                link.return_credit()

    def on_disposition(self, delivery: Delivery) -> None:
        """See ``LinkSink``."""
        assert isinstance(delivery, ClientDelivery)  # noqa: S101 - made by ``SentMessage``
        assert delivery.sent is not None  # noqa: S101 - as above
        delivery.sent.note_disposition()


class SentMessage:
    """A message that a client sent; ``history`` has each (state, settled) that the router sent for it."""

    def __init__(self, sender: MemorySender, settled: bool, state: object) -> None:
        self.sender = sender
        self.delivery = ClientDelivery(sender.link)
        if settled:
            self.delivery.mark_settled()
        self.delivery.sent = self
        self.delivery.transfer_state = None if state is None else _encoded(state)[1]
        self.history: list[tuple[object, bool]] = []
        self._left = bytearray()
        self._more = True
        self._aborted = False

    @property
    def outcome(self) -> object:
        """The last state that came, or None."""
        return self.history[-1][0] if self.history else None

    @property
    def settled(self) -> bool:
        """Whether the router settled it."""
        return self.delivery.remote_settled

    def more(self, piece: bytes) -> None:
        """Send another piece, not the last one."""
        self._left += piece
        self.sender.wait(self)

    def finish(self, piece: bytes = b"") -> None:
        """Send the last piece."""
        self._more = False
        self.more(piece)

    def abort(self) -> None:
        """Abort the message."""
        self._aborted = True
        self._left.clear()
        self.sender.wait(self)

    def settle(self, state: object = None, settled: bool = True) -> None:
        """Send the sender's own state, and settle if ``settled``."""
        code, encoded = _encoded(state)
        self.delivery.link.session.settle_outgoing(self.delivery, code, encoded, settled)

    def push(self) -> bool:
        """Send the part that can go; return whether the next message may."""
        link = self.sender.link
        if self._aborted:
            link.abort_delivery(self.delivery)
            return True
        if self._left or not self.delivery.begun or not self._more:
            left = bytes(self._left)
            stop = link.send(self.delivery, left, 0, len(left), self._more)
            del self._left[:stop]
        return self.delivery.complete

    def note_disposition(self) -> None:
        """Note a disposition of the router."""
        self.history.append((_decoded(self.delivery.remote_state), self.delivery.remote_settled))


class MemoryReceiver(_MemoryLink):
    """A client's receiving link; ``received`` has every message whose first frame came."""

    link: IncomingLink

    def __init__(self, client: MemoryLinkOwner, link: IncomingLink) -> None:
        super().__init__(client, link)
        self.received: list[ReceivedMessage] = []
        #: Credit to grant once the attach is answered.
        self.wanted_credit = 0
        #: Number of drains that the router answered.
        self.drained = 0

    def on_attached(self, attach: Attach) -> None:
        """See ``_MemoryLink``."""
        super().on_attached(attach)
        if self.wanted_credit > 0:
            self.grant(self.wanted_credit)

    @property
    def bodies(self) -> list[bytes]:
        """The bodies of the complete messages."""
        return [message.body for message in self.received if message.complete]

    def grant(self, count: int) -> None:
        """Grant credit for ``count`` more messages."""
        self.link.grant(count)

    def drain(self) -> None:
        """Drain: request messages up to the credit, and the rest of it back."""
        self.link.drain()

    def make_delivery(self, link: LinkPort) -> Delivery:
        """See ``LinkSink``."""
        return ClientDelivery(link)

    def on_transfer(self, link: Any, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        """See ``LinkSink``."""
        assert isinstance(delivery, ClientDelivery)  # noqa: S101 - made by ``make_delivery``
        message = delivery.received
        if message is None:
            message = delivery.received = ReceivedMessage(delivery)
            self.received.append(message)
        message.frames.append(data[start:end])

    def on_aborted(self, link: Any, delivery: Delivery) -> None:
        """See ``LinkSink``."""

    def on_disposition(self, delivery: Delivery) -> None:
        """See ``LinkSink``."""
        assert isinstance(delivery, ClientDelivery)  # noqa: S101 - made by ``make_delivery``
        assert delivery.received is not None  # noqa: S101 - its first frame came
        delivery.received.history.append((_decoded(delivery.remote_state), delivery.remote_settled))

    def on_drained(self, link: Any) -> None:
        """See ``LinkSink``."""
        self.drained += 1


class ReceivedMessage:
    """A message that a client receives; ``history`` has each later (state, settled) of its sender."""

    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery
        self.frames: list[bytes] = []
        self.history: list[tuple[object, bool]] = []
        #: The transfer was settled.
        self.settled = delivery.remote_settled

    @property
    def complete(self) -> bool:
        """Whether its last frame has come, and it was not aborted."""
        return self.delivery.complete and not self.delivery.aborted

    @property
    def aborted(self) -> bool:
        """Whether it was aborted."""
        return self.delivery.aborted

    @property
    def payload(self) -> bytes:
        """The bytes that have come."""
        return b"".join(self.frames)

    @property
    def transfer_state(self) -> object:
        """The delivery state in the transfer, or None."""
        return _decoded(self.delivery.transfer_state)

    @property
    def annotations(self) -> dict[object, object] | None:
        """The message annotations, or None."""
        scan = MessageScan()
        payload = self.payload
        scan.scan_sections(payload, 0, len(payload), 3, True)
        if scan.annotations_start < 0:
            return None
        value = decode(payload, scan.annotations_start, scan.annotations_end)[0]
        assert isinstance(value, Described)  # noqa: S101 - every section is
        assert isinstance(value.value, dict)  # noqa: S101 - the scan saw a map
        return value.value

    @property
    def body(self) -> bytes:
        """The content of the data sections, joined."""
        payload, offset, body = self.payload, 0, b""
        while offset < len(payload):
            section, offset = decode(payload, offset, len(payload))
            if isinstance(section, Described) and section.descriptor == DATA:
                assert isinstance(section.value, bytes)  # noqa: S101 - by its section
                body += section.value
        return body

    def settle(self, state: object = Accepted(), settled: bool = True) -> None:
        """Send the receiver's state (None for none), and settle if ``settled``."""
        code, encoded = _encoded(state)
        self.delivery.link.session.settle_incoming(self.delivery, code, encoded, settled)


def _encoded(state: object) -> tuple[int, bytes | None]:
    """Return a state's descriptor (0 for none, or for one outside the standard) and its bytes."""
    if state is None:
        return 0, None
    encoded = state if isinstance(state, bytes) else encode_state(state)  # type: ignore[arg-type]
    return (encoded[2] if encoded[1] == 0x53 else 0), encoded


def _decoded(state: bytes | None) -> object:
    return None if state is None else decode_state(state, 0, len(state))[0]
