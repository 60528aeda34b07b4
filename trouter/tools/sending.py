"""Sends messages one after the other, with several unsettled at a time, and counts their outcomes."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import trio

from trouter.client import Outcome, OutcomeUnknown, Sender, Tracker

from .bodies import Outgoing, Streamed
from .failures import Timeout
from .progress import Advance, no_progress
from .tally import Tally


async def paced(messages: AsyncIterator[Outgoing], rate: float | None) -> AsyncGenerator[Outgoing, None]:
    """Yield the messages, at most `rate` per second."""
    began_s, number = trio.current_time(), 0
    async for message in messages:
        if rate is not None:
            await trio.sleep_until(began_s + number / rate)
        number += 1
        yield message


@dataclass(slots=True)
class Sending:
    """One run of messages over one link; made by the tool that sends them."""

    sender: Sender
    tally: Tally
    #: Limit of the sent messages without an outcome.
    window: int
    settled: bool
    #: Seconds that credit, and each outcome, may take.
    timeout_s: float
    advance: Advance = no_progress
    #: Progress counts bytes, not messages.
    counts_bytes: bool = False
    _pending: deque[Tracker] = field(default_factory=deque)

    async def put(self, message: Outgoing) -> None:
        """Send a message; Timeout if it gets no credit. Cancelled, the message is not sent."""
        while self._pending and (self._pending[0].done or len(self._pending) >= self.window):
            await self._settle_first()
        if isinstance(message, Streamed):
            await self._stream(message)
            return
        with self._patience("took no message", "no credit"):
            tracker = await self.sender.submit(message, settled=self.settled)
        self._pending.append(tracker)
        self.advance(len(message.body) if self.counts_bytes else 1)

    async def finish(self) -> None:
        """Wait for every outcome; Timeout if there is none for too long."""
        while self._pending:
            await self._settle_first()

    def give_up(self) -> None:
        """Count the messages that have no outcome."""
        self.tally.add("without an outcome", len(self._pending))
        self._pending.clear()

    async def _settle_first(self) -> None:
        tracker = self._pending[0]
        try:
            with self._patience("sent no outcome", "no outcome"):
                outcome = await tracker.outcome()
        except OutcomeUnknown:
            self.tally.add("settled with an unknown outcome")
        else:
            self._count(outcome)
        self._pending.popleft()

    def _count(self, outcome: Outcome) -> None:
        if self.settled:
            self.tally.add("pre-settled")
        else:
            self.tally.add_outcome(outcome)

    async def _stream(self, message: Streamed) -> None:
        with self._patience("took no more of the message", "no credit") as scope:

            async def pieces() -> AsyncIterator[bytes]:
                scope.deadline = math.inf  # reading may take any time: standard input may be a terminal
                async for piece in message.pieces():
                    scope.deadline = trio.current_time() + self.timeout_s
                    yield piece
                    scope.deadline = math.inf
                    self.advance(len(piece) if self.counts_bytes else 0)
                scope.deadline = trio.current_time() + self.timeout_s

            outcome = await self.sender.send_stream(
                pieces(), head=message.head, size=message.size, settled=self.settled
            )
        self._count(outcome)

    @contextmanager
    def _patience(self, did_not: str, what: str) -> Iterator[trio.CancelScope]:
        with trio.move_on_after(self.timeout_s) as scope:
            yield scope
        if scope.cancelled_caught:
            where = self.sender.address
            why = f" (`trouter stat --why {where}` tells why)" if where else ""
            raise Timeout(f"{what} for {self.timeout_s:g} s: the peer {did_not}{why}")
