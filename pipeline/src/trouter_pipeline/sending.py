"""Sending of messages: a window of unsettled ones, each followed until it is finally settled.

A released message is sent again after a pause, and one that was unsettled when a connection failed on the next
connection. The receiver may then get it twice, with the same message id. A rejected message is reported, or goes to a
dead-letter address; it never stops the others.
"""

from __future__ import annotations

import heapq
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import trio

from trouter.client import (
    ClientError,
    Encoded,
    LinkDetached,
    Modified,
    Outcome,
    OutcomeUnknown,
    Rejected,
    Released,
    Sender,
    Tracker,
    connect,
)
from trouter.client.connection import Connection
from trouter.client.servers import is_lasting
from trouter_pipeline.connecting import Peer, why
from trouter_pipeline.marking import marked, redelivered
from trouter_pipeline.messages import Unsendable

log = logging.getLogger(__name__)

#: First and longest pause before a released message is sent again; it doubles each time.
RESEND_S: Final = (0.05, 5.0)
#: The same for connections.
RECONNECT_S: Final = (0.1, 10.0)
#: Refusals whose reasons are reported.
MAX_REASONS: Final = 100
TOO_LARGE: Final = "amqp:link:message-size-exceeded"


class Ended(Exception):
    """Nothing more can be sent; the text says why."""


@dataclass(slots=True)
class Tally:
    """The results of a partition's rows. ``refused`` counts all refusals, ``reasons`` has the first ones."""

    rows: int = 0
    accepted: int = 0
    resent: int = 0
    reconnects: int = 0
    dead_lettered: int = 0
    refused: int = 0
    reasons: list[str] = field(default_factory=list)
    #: Why the remaining rows were not sent; "" if all were.
    failure: str = ""

    def refuse(self, row: int, reason: str) -> None:
        self.refused += 1
        if len(self.reasons) < MAX_REASONS:
            self.reasons.append(f"row {row}: {reason[:500]}")

    def add(self, other: Tally) -> None:
        """Add the results of another partition."""
        for name in ("rows", "accepted", "resent", "reconnects", "dead_lettered", "refused"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.reasons += other.reasons[: MAX_REASONS - len(self.reasons)]
        self.failure = self.failure or other.failure

    def __str__(self) -> str:
        counts = (
            (self.dead_lettered, "dead letters"),
            (self.refused, "refused"),
            (self.rows - self.accepted - self.dead_lettered - self.refused, "not settled"),
            (self.resent, "sent again"),
            (self.reconnects, "reconnects"),
        )
        parts = [f"{self.accepted} rows accepted", *(f"{count} {what}" for count, what in counts if count)]
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Terms:
    """How to send. ``address`` "" sends each message to its own `to`; ``dead_letters`` "" reports rejected ones."""

    peers: Sequence[Peer]
    address: str
    window: int = 500
    settle_timeout_s: float = 60.0
    dead_letters: str = ""


class _Letter:
    """A message that is not finally settled."""

    __slots__ = ("data", "dead", "row", "tries")

    def __init__(self, row: int, data: bytes) -> None:
        self.row = row
        self.data = data
        self.tries = 0
        #: Why it was rejected, if it is on its way to the dead letters.
        self.dead = ""

    def __lt__(self, other: _Letter) -> bool:
        return self.row < other.row


Chunk = Sequence[bytes | Unsendable]


class Sending:
    """The sending of one partition; ``run`` returns when all of it is settled, or cannot be."""

    def __init__(self, terms: Terms, chunks: Iterator[Chunk]) -> None:
        self.tally = Tally()
        self._terms = terms
        self._chunks = chunks
        #: The next chunk is made while the one before it is sent.
        self._ready_in, self._ready = trio.open_memory_channel[Chunk](1)
        self._fault: BaseException | None = None
        self._fresh: Iterator[bytes | Unsendable] = iter(())
        #: Messages sent and not settled, in the order of sending.
        self._flying: deque[tuple[_Letter, Tracker]] = deque()
        #: Messages to send again: (time, message).
        self._later: list[tuple[float, _Letter]] = []
        #: A message that was taken and is not sent yet.
        self._next: _Letter | None = None
        self._patience = trio.CancelScope()
        self._trouble = ""
        self._dead: Sender | None = None

    async def run(self) -> Tally:
        """Send all rows. A fault of the peer becomes the tally's failure; exceptions of the chunks are raised."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._make_chunks)
            with self._patience:
                try:
                    await self._connected()
                except Ended as ended:
                    self.tally.failure = str(ended)
            if self._patience.cancelled_caught:
                self.tally.failure = self._stalled()
            nursery.cancel_scope.cancel()
        if self._fault is not None:
            raise self._fault
        return self.tally

    async def _make_chunks(self) -> None:
        """Take chunks in a thread, because Spark may be slow and must not block the connection."""
        with self._ready_in:
            try:
                while (chunk := await trio.to_thread.run_sync(next, self._chunks, None)) is not None:
                    await self._ready_in.send(chunk)
            except Exception as fault:  # noqa: BLE001 - raised again by `run`
                self._fault = fault
                self._patience.cancel()

    def _stalled(self) -> str:
        seconds = f"{self._terms.settle_timeout_s:g} s"
        to = self._terms.address or "the addresses in `to`"
        waiting = len(self._flying) + len(self._later) + (self._next is not None)
        why = f"; {self._trouble}" if self._trouble else ""
        return f"no settlement progress for {seconds}: {waiting} messages to {to} are not settled{why}"

    def _progressed(self) -> None:
        self._patience.deadline = trio.current_time() + self._terms.settle_timeout_s

    # --- connections

    async def _connected(self) -> None:
        """Send over one connection after the other, until all is settled; Ended for a lasting failure."""
        pause, longest = RECONNECT_S
        attempt = 0
        self._progressed()
        while True:
            peer = self._terms.peers[attempt % len(self._terms.peers)]
            settled = self._settled()
            try:
                async with connect(peer.url, **peer.arguments) as connection:
                    await self._over(connection)
                    return
            except (ClientError, OSError, trio.TooSlowError) as error:
                reason = "no answer" if isinstance(error, trio.TooSlowError) else why(error)
                link = f"{self._terms.address or 'the anonymous relay'}: " if isinstance(error, LinkDetached) else ""
                self._trouble = f"{peer.url}: {link}{reason}"
                if is_lasting(error):
                    raise Ended(self._trouble) from None
            log.warning("%s; connecting again, %d messages are not settled", self._trouble, len(self._flying))
            self._take_back()
            self.tally.reconnects += 1
            attempt += 1
            if self._settled() > settled:
                pause, attempt = RECONNECT_S[0], 0
            if attempt % len(self._terms.peers) == 0:
                await trio.sleep(pause)
                pause = min(2 * pause, longest)

    def _settled(self) -> int:
        return self.tally.accepted + self.tally.refused + self.tally.dead_lettered

    def _take_back(self) -> None:
        """Send all unsettled rows again, in order: the connection failed, and their outcomes are unknown."""
        now = trio.current_time()
        for letter, _tracker in self._flying:
            heapq.heappush(self._later, (now, letter))
        self.tally.resent += len(self._flying)
        self._flying.clear()
        self._dead = None

    async def _over(self, connection: Connection) -> None:
        async with connection.open_sender(self._terms.address or None) as sender:
            if not self._terms.dead_letters:
                await self._pump(sender)
                return
            async with connection.open_sender(self._terms.dead_letters) as dead:
                self._dead = dead
                await self._pump(sender)

    # --- the window

    async def _pump(self, sender: Sender) -> None:
        """Keep the window full and handle the outcomes, in the order of sending, until nothing is left."""
        while True:
            while self._due() or len(self._flying) + len(self._later) < self._terms.window:
                letter = self._take()
                if letter is None:
                    break
                self._next = letter
                await self._send(sender, letter)
                self._next = None
            if self._flying:
                await self._settle_some()
            elif self._later:
                await trio.sleep_until(self._later[0][0])
            elif not await self._wait_for_rows():
                return

    def _due(self) -> bool:
        return bool(self._later) and self._later[0][0] <= trio.current_time()

    def _take(self) -> _Letter | None:
        """Return the message to send next: one that is due again, else a fresh row; None without either."""
        if self._next is not None:
            return self._next
        if self._due():
            return heapq.heappop(self._later)[1]
        while True:
            for message in self._fresh:
                row = self.tally.rows
                self.tally.rows += 1
                if isinstance(message, bytes):
                    return _Letter(row, message)
                self.tally.refuse(row, f"cannot be sent: {message.reason}")
            try:
                self._fresh = iter(self._ready.receive_nowait())
            except (trio.WouldBlock, trio.EndOfChannel):
                return None

    async def _send(self, sender: Sender, letter: _Letter) -> None:
        link = self._dead if letter.dead and self._dead is not None else sender
        if 0 < link.max_message_size < len(letter.data):
            self._reject(letter, f"{TOO_LARGE}: {len(letter.data)} bytes, the peer takes {link.max_message_size}")
            return
        message = Encoded(letter.data)
        try:
            tracker = link.send_nowait(message)
        except trio.WouldBlock:
            tracker = await link.submit(message)
        self._flying.append((letter, tracker))

    async def _settle_some(self) -> None:
        """Wait for the oldest outcome, and handle all that have come with it."""
        flying = self._flying
        settled = self._settled()
        while True:
            letter, tracker = flying[0]
            outcome: Outcome | OutcomeUnknown
            try:
                outcome = await tracker.outcome()
            except OutcomeUnknown as unknown:
                outcome = unknown
            flying.popleft()
            self._settle(letter, outcome)
            if not flying or not flying[0][1].done:
                break
        if self._settled() > settled:
            self._progressed()

    async def _wait_for_rows(self) -> bool:
        """Wait for more rows, however long that takes; return False at their end."""
        self._patience.deadline = float("inf")
        try:
            self._fresh = iter(await self._ready.receive())
        except trio.EndOfChannel:
            return False
        finally:
            self._progressed()
        return True

    # --- outcomes

    def _settle(self, letter: _Letter, outcome: Outcome | OutcomeUnknown) -> None:
        if isinstance(outcome, OutcomeUnknown):
            self._reject(letter, str(outcome))
        elif isinstance(outcome, Released):
            self._trouble = f"{self._to(letter)} released the message"
            self._again(letter)
        elif isinstance(outcome, Modified) and not outcome.undeliverable_here:
            self._trouble = f"{self._to(letter)} modified the message so that it can be sent again"
            letter.data = redelivered(letter.data, outcome)
            self._again(letter)
        elif isinstance(outcome, Modified):
            self._reject(letter, "modified: undeliverable here")
        elif isinstance(outcome, Rejected):
            why = outcome.error
            self._reject(letter, "rejected" if why is None else f"{why.condition}: {why.description or 'rejected'}")
        elif letter.dead:
            self.tally.dead_lettered += 1
        else:
            self.tally.accepted += 1

    def _to(self, letter: _Letter) -> str:
        return self._terms.dead_letters if letter.dead else self._terms.address or "the peer"

    def _again(self, letter: _Letter) -> None:
        first, longest = RESEND_S
        pause = min(first * 2**letter.tries, longest)
        letter.tries = min(letter.tries + 1, 30)
        self.tally.resent += 1
        heapq.heappush(self._later, (trio.current_time() + pause, letter))

    def _reject(self, letter: _Letter, reason: str) -> None:
        if letter.dead or not self._terms.dead_letters:
            where = f" (and as a dead letter to {self._terms.dead_letters}: {reason})" if letter.dead else ""
            self.tally.refuse(letter.row, (letter.dead or reason) + where)
            return
        letter.dead = reason
        letter.tries = 0
        letter.data = marked(letter.data, {"x-opt-refused": reason[:500], "x-opt-refused-by": self._terms.address})
        heapq.heappush(self._later, (trio.current_time(), letter))


def send_rows(terms: Terms, chunks: Iterable[Chunk]) -> Tally:
    """Send all chunks and return the results; a fault of the peer becomes the tally's failure.

    It is not raised, because Spark would restart the calling task, which would send everything again.
    """
    return trio.run(Sending(terms, iter(chunks)).run)
