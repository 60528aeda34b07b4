"""Clients that send numbered messages, connect again after a lost connection, and enter each event in the ledger."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import trio

from tests.lines import Namespace
from trouter.client import ACCEPTED, ClientError, Connection, Message, Receiver, Sender, Tracker, connect
from trouter.wire.message import Header

from .ledger import Heard, Ledger, Recovery

#: Seconds until a client tries again after it lost its connection or was refused.
RETRY_S: Final = 0.05
#: A receiver releases an attempt whose number is a multiple of this when it gets it for the first time.
RELEASED_EVERY: Final = 97
#: A client closes the connection after the router was silent for so many seconds.
_IDLE_S: Final = 8.0
#: Longer than any fault of a scenario, in seconds; an attempt without an outcome by then is stuck.
PATIENCE_S: Final = 60.0
_LOOK_S: Final = 0.1

#: Only one client at a time dials from another namespace, because the thread is in that namespace meanwhile.
_abroad = trio.Lock()


@dataclass(frozen=True)
class Way:
    """How a client connects to a router: over TLS or not, from within a network namespace or not."""

    url: str
    tls: ssl.SSLContext | None = None
    namespace: Namespace | None = None

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Connect for the length of the block; raise ClientError, OSError or trio.TooSlowError."""
        async with AsyncExitStack() as stack:
            connecting = connect(self.url, ssl_context=self.tls, idle_timeout=_IDLE_S)
            if self.namespace is None:
                yield await stack.enter_async_context(connecting)
            else:
                async with _abroad:
                    with self.namespace.inside():
                        connection = await stack.enter_async_context(connecting)
                yield connection


@dataclass
class _Fault:
    since_s: float
    #: The number of the next attempt.
    number: int
    away_s: float = 0.0

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.since_s


@dataclass
class Traffic:
    """Senders and receivers of one address that run until ``count`` messages are accepted."""

    address: str
    sending: list[Way]
    receiving: list[Way]
    count: int
    in_flight: int = 200
    #: A broker is between the ends: messages are durable and may arrive twice.
    at_least_once: bool = False
    ledger: Ledger = field(default_factory=Ledger)
    #: Enters the arrivals at the end, if no receiver of the traffic does.
    read_back: Callable[[Ledger], None] | None = None
    accepted: int = 0

    def __post_init__(self) -> None:
        self.ledger.at_least_once = self.at_least_once
        self._changed = trio.Event()
        #: Faults after which no message was accepted yet.
        self._faults: list[_Fault] = []
        self._receivers = 0
        self._over = False

    @asynccontextmanager
    async def flowing(self) -> AsyncIterator[Traffic]:
        """Send while the block runs and until ``count`` messages are accepted; then wait for each outcome."""
        async with trio.open_nursery() as clients:
            for each in self.receiving:
                clients.start_soon(self._receive, each)
            await self.until_all_receive()
            async with trio.open_nursery() as senders:
                for each in self.sending:
                    senders.start_soon(self._send, each)
                yield self
                await self.until(1.0)
                self._over = True
                senders.cancel_scope.deadline = trio.current_time() + PATIENCE_S
            await self._until_all_came()
            clients.cancel_scope.cancel()

    async def until_all_receive(self) -> None:
        """Wait until each receiver has its link."""
        await self._until(lambda: self._receivers == len(self.receiving))

    async def until(self, share: float) -> None:
        """Wait until this share of ``count`` is accepted."""
        await self._until(lambda: self.accepted >= share * self.count)

    def fault(self) -> None:
        """Enter a fault: the ledger records the time until a message sent after it is accepted."""
        self._faults.append(_Fault(time.monotonic(), len(self.ledger.heard)))

    def back(self) -> None:
        """Enter that the killed process accepts connections again, if a message still waits for that."""
        if self._faults:
            self._faults[-1].away_s = self._faults[-1].age_s

    async def until_recovered(self) -> None:
        """Wait until a message that was sent after the last fault is accepted."""
        await self._until(lambda: not self._faults)

    async def _until(self, true: Callable[[], bool]) -> None:
        with trio.fail_after(3 * PATIENCE_S):
            while not true():
                await self._changed.wait()

    async def _until_all_came(self) -> None:
        """Enter the arrivals with ``read_back``, or wait until the receivers have each accepted message."""
        if self.read_back is not None:
            await run_blocking(self.read_back, self.ledger)
        elif self.at_least_once:
            await self._until_clean()

    async def _until_clean(self) -> None:
        with trio.move_on_after(PATIENCE_S):
            while self.ledger.totals().failures:  # noqa: ASYNC110 - adding up takes longer than a message
                await trio.sleep(_LOOK_S)

    def _change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    def _hear(self, number: int, outcome: Heard) -> None:
        self.ledger.hear(number, outcome)
        if outcome == Heard.ACCEPTED:
            self.accepted += 1
            while self._faults and number >= self._faults[0].number:
                fault = self._faults.pop(0)
                self.ledger.recoveries.append(Recovery(fault.age_s, fault.away_s))
            self._change()

    async def _send(self, way: Way) -> None:
        while not self._over:
            try:
                async with way.connect() as connection, connection.open_sender(self.address) as sender:
                    await self._send_over(sender)
            except* (ClientError, OSError, trio.TooSlowError):
                await trio.sleep(RETRY_S)

    async def _send_over(self, sender: Sender) -> None:
        room = trio.Semaphore(self.in_flight)
        async with trio.open_nursery() as nursery:
            while not self._over:
                await room.acquire()
                number = self.ledger.attempt()
                try:
                    tracker = await sender.submit(Message(number, header=Header(durable=self.at_least_once)))
                except ClientError:
                    self._hear(number, Heard.CONNECTION_LOST)
                    raise
                nursery.start_soon(self._await_outcome, number, tracker, room)

    async def _await_outcome(self, number: int, tracker: Tracker, room: trio.Semaphore) -> None:
        try:
            outcome = await tracker.outcome()
            self._hear(number, Heard.ACCEPTED if outcome == ACCEPTED else Heard.RETURNED)
        except ClientError:
            self._hear(number, Heard.CONNECTION_LOST)
        room.release()  # if the connection is lost, the next message finds that out

    async def _receive(self, way: Way) -> None:
        first = True
        while True:
            try:
                async with way.connect() as connection, connection.open_receiver(self.address, credit=500) as receiver:
                    if first:
                        first, self._receivers = False, self._receivers + 1
                        self._change()
                    await self._receive_over(receiver)
            except* (ClientError, OSError, trio.TooSlowError):
                await trio.sleep(RETRY_S)

    async def _receive_over(self, receiver: Receiver) -> None:
        async for delivery in receiver:
            number = delivery.message.body
            assert isinstance(number, int)
            accept = bool(number % RELEASED_EVERY) or self.ledger.arrived[number] > 0
            self.ledger.arrive(number, accept)
            await (delivery.accept() if accept else delivery.release())


async def run_blocking(work: Callable[..., object], *arguments: object) -> None:
    """Run blocking work in a thread, while the clients go on."""
    await trio.to_thread.run_sync(partial(work, *arguments))
