"""Clients that connect again whenever their connection ends, and a ledger of what they sent and received."""

from __future__ import annotations

import ssl
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

import trio

from tests.kubernetes.waiting import until
from trouter.client import Accepted, ClientError, Connection, Message, Modified, Outcome, Sender, connect

#: Seconds before a client connects again, as clients commonly wait.
_AGAIN_S: Final = 0.1
#: Seconds between two messages.
_PACE_S: Final = 0.002


@dataclass
class Clients:
    """How the clients of a test connect."""

    url: str
    user: str
    password: str
    context: ssl.SSLContext

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        async with connect(
            self.url, user=self.user, password=self.password, ssl_context=self.context, timeout=10
        ) as connection:
            yield connection


#: How many times an attempt with this outcome may have arrived; with every other it may not: no receiver had it.
_MAY_ARRIVE: Final = {"accepted": (1,), "modified, delivery-failed": (0, 1), "unknown": (0, 1)}


@dataclass
class Ledger:
    """Numbered messages from one client to another through the service, each sent until an attempt is accepted."""

    clients: Clients
    address: str
    #: By message the outcome of each attempt, in order.
    outcomes: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    accepted: set[int] = field(default_factory=set)
    #: What arrived: the numbers of a message and of its attempt.
    received: Counter[tuple[int, int]] = field(default_factory=Counter)
    connections: int = 0
    stopped: bool = False
    #: Messages that entered the network at one router and left it at another.
    crossed: int = 0
    #: The router that each of the two clients is connected to.
    sender_at: str = ""
    receiver_at: str = ""

    async def send(self) -> None:
        """Send one message after the other, each until it is accepted, until stopped."""
        number = 0
        while not self.stopped:
            with suppress(ClientError, OSError, trio.TooSlowError):
                async with self.clients.connection() as connection, connection.open_sender(self.address) as sender:
                    self.connections += 1
                    self.sender_at = connection.remote.container_id
                    while not self.stopped:
                        if await self._attempt(sender, number):
                            number += 1
                        await trio.sleep(_PACE_S)
            if not self.stopped:
                await trio.sleep(_AGAIN_S)

    async def _attempt(self, sender: Sender, number: int) -> bool:
        """Send a message once; return whether it was accepted."""
        attempts = self.outcomes[number]
        attempts.append("unknown")
        outcome = await sender.send(Message([number, len(attempts) - 1]))
        attempts[-1] = _word(outcome)
        if outcome != Accepted():
            return False
        self.accepted.add(number)
        self.crossed += self.sender_at != self.receiver_at
        return True

    async def receive(self) -> None:
        """Accept every message, until cancelled."""
        while True:
            with suppress(ClientError, OSError, trio.TooSlowError):
                async with self.clients.connection() as connection, connection.open_receiver(self.address) as receiver:
                    self.connections += 1
                    self.receiver_at = connection.remote.container_id
                    async for delivery in receiver:
                        number, attempt = delivery.message.body
                        self.received[number, attempt] += 1
                        await delivery.accept()
            await trio.sleep(_AGAIN_S)

    async def wait_for(self, count: int) -> None:
        """Wait until ``count`` messages more have been accepted."""
        wanted = len(self.accepted) + count
        await until(lambda: len(self.accepted) >= wanted)

    async def close(self) -> None:
        """Send nothing more, and wait until everything that was accepted has arrived."""
        self.stopped = True
        await until(lambda: not self.lost)

    @property
    def lost(self) -> set[int]:
        """The messages that were accepted and did not arrive."""
        return self.accepted - {number for number, _ in self.received}

    @property
    def twice(self) -> dict[int, list[str]]:
        """The messages that arrived more than once, with the outcome of each attempt that did."""
        arrived = defaultdict(list)
        for number, attempt in sorted(self.received.elements()):
            arrived[number].append(self.outcomes[number][attempt])
        return {number: outcomes for number, outcomes in arrived.items() if len(outcomes) > 1}

    @property
    def contradicted(self) -> list[str]:
        """The attempts that arrived otherwise than their outcome told the sender."""
        return [
            f"message {number}, attempt {attempt}: {outcome}, and arrived {self.received[number, attempt]} times"
            for number, outcomes in self.outcomes.items()
            for attempt, outcome in enumerate(outcomes)
            if self.received[number, attempt] not in _MAY_ARRIVE.get(outcome, (0,))
        ]


def _word(outcome: Outcome | None) -> str:
    """Return the name of an outcome; a delivery that was settled without one may have arrived."""
    if isinstance(outcome, Modified) and outcome.delivery_failed:
        return "modified, delivery-failed"
    return "unknown" if outcome is None else type(outcome).__name__.lower()
