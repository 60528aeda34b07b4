"""Links of a client in memory, and the messages on them."""

from __future__ import annotations

from collections import deque
from typing import Any, Final, Protocol

from trouter.engine.events import LinkDetached
from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.engine.link_base import Link
from trouter.engine.ports import Delivery, LinkSink
from trouter.wire.codec import decode
from trouter.wire.performatives import Accepted, Attach, Error, Source, Target, decode_state, encode_state
from trouter.wire.sections import MessageScan
from trouter.wire.types import Described

from .messages import DATA

_AS_ASKED: Final = object()


class LinkOwner(Protocol):
    """The client that a link belongs to: ``memory.MemoryClient``."""

    stalled: bool
    dropped: bool

    def pump(self) -> None:
        """Carry octets both ways until everything has come to rest."""

    def write(self) -> bool:
        """Carry to the router what the client has said; return whether that was anything."""

    def end(self) -> None:
        """End the client's session in order."""

    def drop(self) -> None:
        """Break the connection."""


class _MemoryLink(LinkSink):
    """What both kinds of links know of themselves."""

    def __init__(self, client: LinkOwner, link: Link) -> None:
        self.client = client
        self.link = link
        link.sink = self
        #: The router's attach, and its detach if that came first.
        self.attach: Attach | None = None
        self.detached: LinkDetached | None = None

    def on_attached(self, attach: Attach) -> None:
        """Take note that the router's attach came."""
        self.attach = attach

    def answer(self, source: object = _AS_ASKED, target: object = _AS_ASKED) -> None:
        """Answer an attach of the router's, with the termini that it asked for or others; ours are answered already."""
        asked = self.attach
        assert asked is not None  # noqa: S101 - it came
        self.link.attach(
            asked.source if source is _AS_ASKED else source, asked.target if target is _AS_ASKED else target
        )

    def refuse(self, error: Error) -> None:
        """Refuse an attach of the router's."""
        self.link.refuse(error)
        self.client.pump()

    @property
    def credit(self) -> int:
        """Return how many more messages the sending end may begin."""
        return self.link.credit

    @property
    def address(self) -> str:
        """Return the address in the router's attach, of its source if it sends; a dynamic one is made up by it."""
        assert self.attach is not None  # noqa: S101 - asked for after the attach was answered
        terminus = self.attach.source if self.link.incoming else self.attach.target
        assert isinstance(terminus, Source | Target)  # noqa: S101 - as above
        return str(terminus.address)

    @property
    def error(self) -> Error | None:
        """Why the router detached the link; None when it did not, or did not say."""
        return None if self.detached is None else self.detached.error

    def detach(self, closed: bool = True, error: Error | None = None) -> None:
        """Detach in order, and let everything come to rest."""
        self.link.awaited = True
        self.link.detach(closed, error)
        self.client.pump()


class MemorySender(_MemoryLink):
    """A client's link to send on. What credit, window or room do not take at once is sent when they do."""

    link: OutgoingLink

    def __init__(self, client: LinkOwner, link: OutgoingLink) -> None:
        super().__init__(client, link)
        #: How often the router asked for the rest of the credit, and with how much of it left.
        self.drains: list[int] = []
        #: Drains are answered as they come.
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
        """Send a message in at least ``frames`` frames; with ``abort`` it is taken back instead of completed."""
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
        """Begin a message; ``more``, ``finish`` and ``abort`` of what it returns go on."""
        sent = SentMessage(self, settled, state)
        sent.more(piece)
        return sent

    def drained(self) -> None:
        """Answer a drain: give the rest of the credit back."""
        self.link.drained()

    def wait(self, sent: SentMessage) -> None:
        """Send what ``sent`` has to send: now if possible, in its turn otherwise."""
        if sent not in self._waiting:
            self._waiting.append(sent)
        self._push()

    def _push(self) -> None:
        while self._waiting and (self._waiting[0].delivery.begun or self.link.ready()) and not self.link.waiting:
            if not self._waiting[0].push():
                return
            self._waiting.popleft()

    def on_credit(self, link: Any) -> None:
        """See ``LinkSink``."""
        self._push()
        if link.drain and not self._waiting:
            self.drains.append(link.credit)
            if self.answers_drain:
                link.drained()

    def on_disposition(self, delivery: Delivery) -> None:
        """See ``LinkSink``."""
        delivery.context.heard()


class SentMessage:
    """A message that a client sent, and what it heard about it: ``history`` has a (state, settled) for each time."""

    def __init__(self, sender: MemorySender, settled: bool, state: object) -> None:
        self.sender = sender
        self.delivery = Delivery(sender.link)
        self.delivery.settled = settled
        self.delivery.context = self
        self.delivery.transfer_state = None if state is None else _encoded(state)[1]
        self.history: list[tuple[object, bool]] = []
        self._left = bytearray()
        self._more = True
        self._aborted = False

    @property
    def outcome(self) -> object:
        """Return the last state that came, None before any."""
        return self.history[-1][0] if self.history else None

    @property
    def settled(self) -> bool:
        """Return whether the router settled it."""
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
        """Take the message back."""
        self._aborted = True
        self._left.clear()
        self.sender.wait(self)

    def settle(self, state: object = None, settled: bool = True) -> None:
        """Tell the router the sender's own state, and with ``settled`` forget the message."""
        code, encoded = _encoded(state)
        self.delivery.link.session.settle_outgoing(self.delivery, code, encoded, settled)

    def push(self) -> bool:
        """Send what is left and can go; whether the next message may."""
        link = self.sender.link
        if self._aborted:
            if self.delivery.begun:
                link.abort(self.delivery)
            self.delivery.complete = self.delivery.aborted = True
            return True
        if self._left or not self.delivery.begun or not self._more:
            left = bytes(self._left)
            stop = link.send(self.delivery, left, 0, len(left), self._more)
            del self._left[:stop]
        return self.delivery.complete

    def heard(self) -> None:
        """Note what the router said about it."""
        self.history.append((_decoded(self.delivery.remote_state), self.delivery.remote_settled))


class MemoryReceiver(_MemoryLink):
    """A client's link to receive on; ``received`` has every message whose first frame came."""

    link: IncomingLink

    def __init__(self, client: LinkOwner, link: IncomingLink) -> None:
        super().__init__(client, link)
        self.received: list[ReceivedMessage] = []
        #: Credit to grant once the attach is answered.
        self.wanted_credit = 0
        #: How often the router answered a drain.
        self.drained = 0

    def on_attached(self, attach: Attach) -> None:
        """See ``_MemoryLink``."""
        super().on_attached(attach)
        if self.wanted_credit > 0:
            self.grant(self.wanted_credit)

    @property
    def bodies(self) -> list[bytes]:
        """Return the bodies of the messages that came whole."""
        return [message.body for message in self.received if message.complete]

    def grant(self, count: int) -> None:
        """Let the router send ``count`` more messages."""
        self.link.grant(count)

    def drain(self) -> None:
        """Ask for messages up to the credit, and for the rest of it back."""
        self.link.drain()

    def on_transfer(self, link: Any, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        """See ``LinkSink``."""
        message = delivery.context
        if message is None:
            message = delivery.context = ReceivedMessage(delivery)
            self.received.append(message)
        message.frames.append(data[start:end])

    def on_aborted(self, link: Any, delivery: Delivery) -> None:
        """See ``LinkSink``."""

    def on_disposition(self, delivery: Delivery) -> None:
        """See ``LinkSink``."""
        delivery.context.history.append((_decoded(delivery.remote_state), delivery.remote_settled))

    def on_drained(self, link: Any) -> None:
        """See ``LinkSink``."""
        self.drained += 1


class ReceivedMessage:
    """A message that a client receives; ``history`` has what its sender said later, as (state, settled)."""

    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery
        self.frames: list[bytes] = []
        self.history: list[tuple[object, bool]] = []
        #: It came settled.
        self.settled = delivery.remote_settled

    @property
    def complete(self) -> bool:
        """Return whether its last frame is here, and it was not taken back."""
        return self.delivery.complete and not self.delivery.aborted

    @property
    def aborted(self) -> bool:
        """Return whether it was taken back."""
        return self.delivery.aborted

    @property
    def payload(self) -> bytes:
        """Return every octet that came."""
        return b"".join(self.frames)

    @property
    def transfer_state(self) -> object:
        """Return the delivery state that the transfer carried, None for none."""
        return _decoded(self.delivery.transfer_state)

    @property
    def annotations(self) -> dict[object, object] | None:
        """Return the message annotations, None for a message without any."""
        scan = MessageScan()
        payload = self.payload
        scan.scan(payload, 0, len(payload), 3, True)
        if scan.annotations_start < 0:
            return None
        value = decode(payload, scan.annotations_start, scan.annotations_end)[0]
        assert isinstance(value, Described)  # noqa: S101 - every section is
        assert isinstance(value.value, dict)  # noqa: S101 - the scan saw a map
        return value.value

    @property
    def body(self) -> bytes:
        """Return the content of the data sections, one after the other."""
        payload, offset, body = self.payload, 0, b""
        while offset < len(payload):
            section, offset = decode(payload, offset, len(payload))
            if isinstance(section, Described) and section.descriptor == DATA:
                assert isinstance(section.value, bytes)  # noqa: S101 - by its section
                body += section.value
        return body

    def settle(self, state: object = Accepted(), settled: bool = True) -> None:
        """Tell the router the receiver's state (None for a settlement without one), and with ``settled`` forget it."""
        code, encoded = _encoded(state)
        self.delivery.link.session.settle_incoming(self.delivery, code, encoded, settled)


def _encoded(state: object) -> tuple[int, bytes | None]:
    """Return a state's descriptor (0 for none, or for one outside the standard) and its octets."""
    if state is None:
        return 0, None
    encoded = state if isinstance(state, bytes) else encode_state(state)  # type: ignore[arg-type]
    return (encoded[2] if encoded[1] == 0x53 else 0), encoded


def _decoded(state: bytes | None) -> object:
    return None if state is None else decode_state(state, 0, len(state))[0]
