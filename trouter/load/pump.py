"""Messages as fast as a socket takes them: the data path of the load generator.

A ``Wire`` joins a non-blocking socket and an engine. A ``LoadSender`` writes as many transfers as credit, window and
output room allow before each write to the socket; a ``LoadReceiver`` settles all messages of one read with one
disposition. One ``LoadTally`` counts for all wires of a process. Nothing here waits: ``fleet`` does.
"""

from __future__ import annotations

import socket
from array import array
from time import perf_counter
from typing import Any

from trouter.engine import deliveries
from trouter.engine.connection import Connection
from trouter.engine.link import IncomingLink, OutgoingLink
from trouter.engine.ports import Delivery, LinkPort, LinkSink

_ACCEPTED = 0x24
_REJECTED = 0x25
_RELEASED = 0x26
_MODIFIED = 0x27
_ACCEPTED_STATE = b"\0\x53\x24\x45"
_READ_BYTES = 131072
#: Transfers gathered before the socket is written.
_BATCH_BYTES = 262144
_MAX_SAMPLES = 1_000_000


class LoadTally:
    """The counts of one process's wires; ``left`` is the number of messages that senders may still begin."""

    __slots__ = (
        "accepted",
        "begun",
        "first_s",
        "last_s",
        "latencies_s",
        "left",
        "messages",
        "modified",
        "no_outcome",
        "body_bytes",
        "presettled",
        "rejected",
        "released",
        "timed",
        "wire_in",
        "wire_out",
    )

    def __init__(self, left: int, timed: bool) -> None:
        self.left = left
        #: Measure each message from its transfer to its disposition.
        self.timed = timed
        #: Deliveries begun by senders, and complete messages: settled if sent, arrived if received.
        self.begun = 0
        self.messages = 0
        self.body_bytes = 0
        self.accepted = 0
        self.rejected = 0
        self.released = 0
        self.modified = 0
        self.presettled = 0
        #: Settled without a terminal state.
        self.no_outcome = 0
        self.wire_in = 0
        self.wire_out = 0
        #: When the first and the last bytes of messages moved.
        self.first_s = 0.0
        self.last_s = 0.0
        self.latencies_s = array("d")

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
        "_current",
        "_data",
        "_filler",
        "_link",
        "_links",
        "_messages",
        "_next",
        "_offset",
        "_presettled",
        "_repeats",
        "_repeats_left",
        "_tally",
        "_window",
        "in_flight",
    )

    def __init__(
        self, tally: LoadTally, messages: list[bytes], window: int, presettled: bool, filler: bytes, repeats: int
    ) -> None:
        self.in_flight = 0
        self._tally = tally
        self._messages = messages
        self._window = window
        self._presettled = presettled
        self._filler = filler
        self._repeats = repeats
        self._links: list[OutgoingLink] = []
        self._next = 0
        #: The delivery whose last frame is still to be written, and its position.
        self._current: SentDelivery | None = None
        self._link: OutgoingLink | None = None
        self._data = b""
        self._offset = 0
        self._repeats_left = 0

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
        link = self._link
        return link is not None and link.waiting

    def fill(self, connection: Connection) -> bool:
        """Write transfers into the output; return True if only its size stopped that, so that more can follow."""
        if self._current is not None and not self._go_on():
            return False
        tally = self._tally
        links = self._links
        messages = self._messages
        out = connection.out
        passed = 0
        width = len(links)
        if width == 0:
            return False
        link = links[0]
        session = link.session
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
            data = messages[self._next % len(messages)]
            delivery = SentDelivery(link)
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
        link = self._link
        delivery = self._current
        if link is None or delivery is None:
            return True
        tally = self._tally
        while True:
            data = self._data
            end = len(data)
            more = self._repeats_left > 0
            start = self._offset
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
        code = delivery.remote_code
        tally = self._tally
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

    def on_credit(self, link: Any) -> None:
        """Give the credit back on a drain, unless a message is being sent on the link."""
        outgoing = link
        if outgoing.drain and (self._current is None or outgoing is not self._link):
            outgoing.return_credit()


class LoadReceiver(LinkSink):
    """Accepts and settles all messages on its links, and renews their credit when half of it is used."""

    __slots__ = ("_credit", "_tally", "_top_up", "stalled")

    def __init__(self, tally: LoadTally, credit: int) -> None:
        self._tally = tally
        self._credit = credit
        self._top_up = (credit + 1) // 2
        #: Settle nothing and renew no credit.
        self.stalled = False

    def add(self, link: IncomingLink) -> None:
        """Receive on ``link`` too."""
        link.sink = self
        link.grant(self._credit)

    def make_delivery(self, link: LinkPort) -> Delivery:
        """See ``LinkSink``."""
        return deliveries.new_delivery(link)

    def on_transfer(self, link: Any, delivery: Delivery, data: bytes, start: int, end: int) -> None:
        """Count the bytes; settle after the last frame."""
        tally = self._tally
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
        incoming = link
        used = self._credit - incoming.credit
        if used >= self._top_up:
            incoming.grant(used)


class Wire:
    """One socket with its engine; ``sender`` is None on a wire that only receives."""

    __slots__ = ("_tally", "connection", "context", "lost", "sender", "sock")

    def __init__(self, sock: socket.socket, connection: Connection, tally: LoadTally) -> None:
        self.sock = sock
        self.connection = connection
        self.sender: LoadSender | None = None
        #: For the driver of the wire.
        self.context: object = None
        #: The socket has ended or failed.
        self.lost = False
        self._tally = tally

    def read(self) -> None:
        """Read once and handle what came."""
        try:
            data = self.sock.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.lost = True
            return
        tally = self._tally
        tally.wire_in += len(data)
        before = tally.messages
        body_bytes = tally.body_bytes
        self.connection.receive_data(data)
        if tally.messages != before or tally.body_bytes != body_bytes:
            tally.mark()

    def write(self) -> bool:
        """Send, flush and write; return True if nothing is left to write, False if the socket is full."""
        connection = self.connection
        out = connection.out
        tally = self._tally
        sender = self.sender
        again = True
        while again:
            again = sender is not None and sender.fill(connection)
            connection.flush()
            connection.outbox.clear()
            if not out:
                return True
            if sender is not None and tally.first_s == 0.0 and tally.begun > 0:
                tally.first_s = perf_counter()
            try:
                sent = self.sock.send(out)
            except BlockingIOError:
                return False
            except OSError:
                self.lost = True
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
