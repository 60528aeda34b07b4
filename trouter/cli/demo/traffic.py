"""The clients of the demonstration: senders and receivers, one that settles nothing, and one that is denied."""

from __future__ import annotations

from itertools import count
from typing import Final, NamedTuple

import trio

from trouter.client import ClientError, Connection, Message, connect

#: Seconds before a client connects again.
AGAIN_S: Final = 2.0
#: Credit of the receiver that settles nothing.
HELD: Final = 10


class Client(NamedTuple):
    """A client: its router and user, its action and address.

    period_s: between two messages of a sender; 0 for a receiver. holds: the receiver settles nothing.
    """

    name: str
    router: str
    user: str
    address: str
    period_s: float = 0.0
    holds: bool = False
    tenant: str = ""

    @property
    def listener(self) -> str:
        """The name of the listener that the client connects to."""
        return "tenants" if self.tenant else "clients"


CLIENTS: Final = (
    Client("web-shop", "branch", "shop", "orders", 0.05),
    Client("app-shop", "main", "shop", "orders", 0.1),
    Client("warehouse-1", "north", "stock", "orders"),
    Client("warehouse-2", "south", "stock", "orders"),
    Client("exchange", "main", "ticker", "prices/gold", 0.1),
    Client("screen-1", "north", "ticker", "prices/gold"),
    Client("screen-2", "south", "ticker", "prices/gold"),
    Client("screen-3", "branch", "ticker", "prices/gold"),
    Client("nightly-report", "north", "reporter", "reports", 1.0),
    Client("printer-that-jams", "south", "reporter", "reports", holds=True),
    Client("acme-jobs", "main", "acme", "jobs", 0.2, tenant="acme.example"),
    Client("acme-worker", "main", "acme", "jobs", tenant="acme.example"),
    Client("umbrella-jobs", "main", "umbrella", "jobs", 0.5, tenant="umbrella.example"),
    Client("umbrella-worker", "main", "umbrella", "jobs", tenant="umbrella.example"),
    Client("intruder", "main", "mallory", "orders"),
)


async def work(client: Client, port: int, password: str) -> None:
    """Run ``client`` again and again, until cancelled."""
    while True:
        try:
            async with connect(
                f"amqp://127.0.0.1:{port}",
                user=client.user,
                password=password,
                container_id=client.name,
                hostname=client.tenant or None,
            ) as connection:
                if client.period_s:
                    await _send(client, connection)
                else:
                    await _receive(client, connection)
        except* (ClientError, OSError):
            pass  # the router is down or denies the client: the console shows it
        await trio.sleep(AGAIN_S)


async def _send(client: Client, connection: Connection) -> None:
    async with connection.open_sender(client.address) as sender:
        for number in count():
            await sender.submit(Message(f"{client.name} {number}"))
            await trio.sleep(client.period_s)


async def _receive(client: Client, connection: Connection) -> None:
    async with connection.open_receiver(client.address, credit=HELD if client.holds else 100) as receiver:
        while True:
            delivery = await receiver.receive()
            if not client.holds:
                await delivery.accept()
