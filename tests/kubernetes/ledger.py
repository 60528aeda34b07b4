"""Clients that connect again whenever their connection ends, and a ledger of what they sent and received."""

from __future__ import annotations

import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

import trio

from tests.kubernetes.waiting import until
from trouter.client import Accepted, ClientError, Connection, Message, Modified, connect

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


@dataclass
class Ledger:
    """Numbered messages from one client to another through the service."""

    clients: Clients
    address: str
    accepted: set[int] = field(default_factory=set)
    received: Counter[int] = field(default_factory=Counter)
    #: The message whose outcome is awaited.
    attempted: int | None = None
    #: Messages of which an attempt failed on its way, or ended without an outcome: these may arrive twice.
    unknown: set[int] = field(default_factory=set)
    refused: int = 0
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
            self.attempted = None
            with suppress(ClientError, OSError, trio.TooSlowError):
                async with self.clients.connection() as connection, connection.open_sender(self.address) as sender:
                    self.connections += 1
                    self.sender_at = connection.remote.container_id
                    while not self.stopped:
                        self.attempted = number
                        outcome = await sender.send(Message(number))
                        self.attempted = None
                        if outcome == Accepted():
                            self.accepted.add(number)
                            self.crossed += self.sender_at != self.receiver_at
                            number += 1
                        else:
                            self.refused += 1
                            if isinstance(outcome, Modified) and outcome.delivery_failed:
                                self.unknown.add(number)
                        await trio.sleep(_PACE_S)
            if self.attempted is not None:
                self.unknown.add(self.attempted)
            if not self.stopped:
                await trio.sleep(_AGAIN_S)

    async def receive(self) -> None:
        """Accept every message, until cancelled."""
        while True:
            with suppress(ClientError, OSError, trio.TooSlowError):
                async with self.clients.connection() as connection, connection.open_receiver(self.address) as receiver:
                    self.connections += 1
                    self.receiver_at = connection.remote.container_id
                    async for delivery in receiver:
                        self.received[delivery.message.body] += 1
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
        return self.accepted - self.received.keys()

    @property
    def doubled(self) -> set[int]:
        """The messages that arrived more than once although their sender knew of the outcome."""
        return {number for number, count in self.received.items() if count > 1} - self.unknown
