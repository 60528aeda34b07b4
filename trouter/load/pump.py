"""Messages as fast as a socket takes them: the data path of the load generator.

A ``Wire`` joins a non-blocking socket and an engine. A ``LoadSender`` writes as many transfers as credit, window and
output room allow before each write to the socket; a ``LoadReceiver`` settles all messages of one read with one
disposition. One ``LoadTally`` counts for all wires of a process. Nothing here waits: ``fleet`` does.
"""

from __future__ import annotations

import socket
from array import array
from time import perf_counter
from typing import TYPE_CHECKING, Final

from trouter.engine import deliveries
from trouter.engine.connection import Connection
from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.engine.ports import Delivery, LinkPort, LinkSink, SessionPort

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

_ACCEPTED: Final[c_int] = 0x24
_REJECTED: Final[c_int] = 0x25
_RELEASED: Final[c_int] = 0x26
_MODIFIED: Final[c_int] = 0x27
_ACCEPTED_STATE: Final[bytes] = b"\0\x53\x24\x45"
_READ_BYTES = 131072
#: Transfers gathered before the socket is written.
_BATCH_BYTES: Final[Py_ssize_t] = 262144
_MAX_SAMPLES: Final[Py_ssize_t] = 1_000_000


class LoadTally:
    """The counts of one process's wires; ``left`` is the number of messages that senders may still begin."""

    __slots__ = (
        "left",
        "timed",
        "begun",
        "messages",
        "body_bytes",
        "accepted",
        "rejected",
        "released",
        "modified",
        "presettled",
        "no_outcome",
        "wire_in",
        "wire_out",
        "first_s",
        "last_s",
        "latencies_s",
    )

    def __init__(self, left: Py_ssize_t, timed: bool) -> None:
        self.left = left
        #: Measure each message from its transfer to its disposition.
        self.timed = timed
        #: Deliveries begun by senders, and complete messages: settled if sent, arrived if received.
        self.begun: Py_ssize_t = 0
        self.messages: Py_ssize_t = 0
        self.body_bytes: Py_ssize_t = 0
        self.accepted: Py_ssize_t = 0
        self.rejected: Py_ssize_t = 0
        self.released: Py_ssize_t = 0
        self.modified: Py_ssize_t = 0
        self.presettled: Py_ssize_t = 0
        #: Settled without a terminal state.
        self.no_outcome: Py_ssize_t = 0
        self.wire_in: Py_ssize_t = 0
        self.wire_out: Py_ssize_t = 0
        #: When the first and the last bytes of messages moved.
        self.first_s = 0.0
        self.last_s = 0.0
        self.latencies_s: array[float] = array("d")

    def mark(self) -> None:
        """Note that something moved now; called once per batch."""
        self.last_s = perf_counter()
        if self.first_s == 0.0:
            self.first_s = self.last_s


class SentDelivery(Delivery):
    """A delivery with the time when it was begun."""

    __slots__ = ("sent_at_s",)

    def __init__(self, link: LinkPort) -> None:
        super().__init__(link)
        self.sent_at_s = 0.0


class LoadSender(LinkSink):
    """The sender on the links of one wire: the n-th message goes on the n-th link, both taken in turn.

    ``window`` bounds the unsettled deliveries of the wire. ``filler``, repeated ``repeats`` times after each message's
    own bytes, makes messages larger than memory.
    """

    __slots__ = (
        "in_flight",
        "_tally",
        "_messages",
        "_window",
        "_presettled",
        "_filler",
        "_repeats",
        "_links",
        "_next",
        "_current",
        "_link",
        "_data",
        "_offset",
        "_repeats_left",
    )

    def __init__(
        self,
        tally: LoadTally,
        messages: list[bytes],
        window: Py_ssize_t,
        presettled: bool,
        filler: bytes,
        repeats: Py_ssize_t,
    ) -> None:
        self.in_flight: Py_ssize_t = 0
        self._tally = tally
        self._messages = messages
        self._window = window
        self._presettled = presettled
        self._filler = filler
        self._repeats = repeats
        self._links: list[OutgoingLink] = []
        self._next: Py_ssize_t = 0
        #: The delivery whose last frame is still to be written, and its position.
        self._current: SentDelivery | None = None
        self._link: OutgoingLink | None = None
        self._data = b""
        self._offset: Py_ssize_t = 0
        self._repeats_left: Py_ssize_t = 0

    def add(self, link: OutgoingLink) -> None:
        """Add ``link`` to those that are sent on."""
        self._links.append(link)
        link.sink = self

    @property
    def busy(self) -> bool:
        """Whether a message is not settled or not sent to its end."""
        return self.in_flight > 0 or self._current is not None

    def paused(self) -> bool:
        """Return whether the link last sent on waits for output room or the session's window."""
        link: OutgoingLink | None = self._link
        return link is not None and link.waiting

    def fill(self, connection: Connection) -> bool:
        """Write transfers into the output; return True if only its size stopped that, so that more can follow."""
        if self._current is not None and not self._go_on():
            return False
        tally: LoadTally = self._tally
        links: list[OutgoingLink] = self._links
        messages: list[bytes] = self._messages
        out: bytearray = connection.out
        passed: Py_ssize_t = 0
        width: Py_ssize_t = len(links)
        if width == 0:
            return False
        link: OutgoingLink = links[0]
        session: SessionPort = link.session
        while tally.left > 0 and self.in_flight < self._window and session.windows.outgoing_frames > 0:
            if len(out) >= _BATCH_BYTES:
                return True
            link = links[self._next % width]
            if not link.is_ready():
                passed += 1
                if passed >= width:
                    return False
                self._next += 1
                continue
            passed = 0
            data: bytes = messages[self._next % len(messages)]
            delivery: SentDelivery = SentDelivery(link)
            delivery.number = self._next
            self._next += 1
            tally.left -= 1
            tally.begun += 1
            if tally.timed:
                delivery.sent_at_s = perf_counter()
            if self._presettled:
                delivery.mark_settled()
            else:
                self.in_flight += 1
            self._current = delivery
            self._link = link
            self._data = data
            self._offset = 0
            self._repeats_left = self._repeats
            if not self._go_on():
                return False
        return False

    def _go_on(self) -> bool:
        """Send more of the begun delivery; return False if it has to wait."""
        link: OutgoingLink | None = self._link
        delivery: SentDelivery | None = self._current
        if link is None or delivery is None:
            return True
        tally: LoadTally = self._tally
        while True:
            data: bytes = self._data
            end: Py_ssize_t = len(data)
            more: bool = self._repeats_left > 0
            start: Py_ssize_t = self._offset
            self._offset = link.send(delivery, data, start, end, more)
            tally.body_bytes += self._offset - start
            if not more:
                break
            if self._offset < end:
                return False
            self._data = self._filler
            self._offset = 0
            self._repeats_left -= 1
        if not delivery.complete:
            return False
        self._current = None
        if delivery.settled:
            tally.presettled += 1
            tally.messages += 1
        return True

    def on_disposition(self, delivery: Delivery) -> None:
        """Count the outcome, and settle if the receiver has not."""
        code: c_int = delivery.remote_code
        tally: LoadTally = self._tally
        if code == _ACCEPTED:
            tally.accepted += 1
        elif code == _RELEASED:
            tally.released += 1
        elif code == _MODIFIED:
            tally.modified += 1
        elif code == _REJECTED:
            tally.rejected += 1
        elif delivery.remote_settled:
            tally.no_outcome += 1
        else:
            return
        if not delivery.remote_settled:
            delivery.link.session.settle_outgoing(delivery, code, None, True)
        self.in_flight -= 1
        tally.messages += 1
        if tally.timed and len(tally.latencies_s) < _MAX_SAMPLES:
            sent: SentDelivery = delivery  # type: ignore[assignment]  # made by ``fill``
            tally.latencies_s.append(perf_counter() - sent.sent_at_s)

    def on_credit(self, link: LinkPort) -> None:
        """Give the credit back on a drain, unless a message is being sent on the link."""
        outgoing: OutgoingLink = link  # type: ignore[assignment]  # the only kind that gets credit
        if outgoing.drain and (self._current is None or outgoing is not self._link):
            outgoing.return_credit()


class LoadReceiver(LinkSink):
    """Accepts and settles all messages on its links, and renews their credit when half of it is used."""

    __slots__ = ("stalled", "_tally", "_credit", "_top_up")

    def __init__(self, tally: LoadTally, credit: Py_ssize_t) -> None:
        self._tally = tally
        self._credit = credit
        self._top_up: Py_ssize_t = (credit + 1) // 2
        #: Settle nothing and renew no credit.
        self.stalled = False

    def add(self, link: IncomingLink) -> None:
        """Receive on ``link`` too."""
        link.sink = self
        link.grant(self._credit)

    def make_delivery(self, link: LinkPort) -> Delivery:
        """See ``LinkSink``."""
        return deliveries.new_delivery(link)

    def on_transfer(self, link: LinkPort, delivery: Delivery, data: bytes, start: Py_ssize_t, end: Py_ssize_t) -> None:
        """Count the bytes; settle after the last frame."""
        tally: LoadTally = self._tally
        tally.body_bytes += end - start
        if not delivery.complete:
            return
        tally.messages += 1
        if self.stalled:
            return
        if delivery.remote_settled:
            tally.presettled += 1
        else:
            tally.accepted += 1
            link.session.settle_incoming(delivery, _ACCEPTED, _ACCEPTED_STATE, True)
        incoming: IncomingLink = link  # type: ignore[assignment]  # the only kind that has transfers
        used: Py_ssize_t = self._credit - incoming.credit
        if used >= self._top_up:
            incoming.grant(used)


class Wire:
    """One socket with its engine; ``sender`` is None on a wire that only receives."""

    __slots__ = ("connection", "sock", "sender", "context", "lost", "failure", "_tally")

    def __init__(self, sock: socket.socket, connection: Connection, tally: LoadTally) -> None:
        self.sock = sock
        self.connection = connection
        self.sender: LoadSender | None = None
        #: For the driver of the wire.
        self.context: object = None
        #: The socket has ended or failed; and the failure, None if the peer has closed it.
        self.lost = False
        self.failure: OSError | None = None
        self._tally = tally

    def read(self) -> None:
        """Read once and handle what came."""
        try:
            data = self.sock.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self.failure = error
            data = b""
        if not data:
            self.lost = True
            return
        tally: LoadTally = self._tally
        tally.wire_in += len(data)
        before: Py_ssize_t = tally.messages
        body_bytes: Py_ssize_t = tally.body_bytes
        self.connection.receive_data(data)
        if tally.messages != before or tally.body_bytes != body_bytes:
            tally.mark()

    def write(self) -> bool:
        """Send, flush and write; return True if nothing is left to write, False if the socket is full."""
        connection: Connection = self.connection
        out: bytearray = connection.out
        tally: LoadTally = self._tally
        sender: LoadSender | None = self.sender
        again: bool = True
        while again:
            again = sender is not None and sender.fill(connection)
            connection.flush()
            connection.outbox.clear()
            if not out:
                return True
            if sender is not None and tally.first_s == 0.0 and tally.begun > 0:
                tally.first_s = perf_counter()
            try:
                sent: Py_ssize_t = self.sock.send(out)
            except BlockingIOError:
                return False
            except OSError as error:
                self.failure = error
                self.lost = True
                self.read()  # TLS says there why the peer closes
                return True
            tally.wire_out += sent
            if sent < len(out):
                del out[:sent]
                return False
            out.clear()
            if sender is not None and sender.paused():
                connection.resume_output()
                again = True
        return True
