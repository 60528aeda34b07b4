"""The traffic of `make pipeline-demo`: the day's work of three tenants, an attack, and a fraud.

    python examples/pipeline/traffic.py amqp://127.0.0.1:5672 [PASSWORD_FILE]

It prints what it planted as one line of JSON, for the program that checks the alerts.
"""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import trio

from trouter.client import AuthenticationFailed, Connection, Delivery, Message, Plain, connect

#: By tenant: the count of messages that it sends to itself.
TENANTS = {"acme": 3000, "globex": 1500, "initech": 600}
GUESSES = 25
CARDS = 2000
#: A card that pays a small sum online and is used for large withdrawals soon after.
STOLEN = "4000-0000-0000-0002"
TURN = trio.Lock()


@asynccontextmanager
async def logged_in(url: str, tenant: str, password: str) -> AsyncIterator[Connection]:
    """Connect as a tenant. Logins run one after the other, because the check of a password is slow on purpose."""
    async with AsyncExitStack() as stack:
        async with TURN:
            connection = await stack.enter_async_context(
                connect(url, hostname=tenant, sasl=[Plain(tenant, password)], timeout=60)
            )
        yield connection


async def work(url: str, tenant: str, count: int, password: str) -> None:
    """Send ``count`` orders and receive them; some of initech's are released or rejected."""
    async with (
        logged_in(url, tenant, password) as here,
        logged_in(url, tenant, password) as there,
        here.open_receiver(f"{tenant}/orders") as receiver,
        there.open_sender(f"{tenant}/orders") as sender,
        trio.open_nursery() as nursery,
    ):

        async def take() -> None:
            for number in range(count):
                await settle(await receiver.receive(), number if tenant == "initech" else 1)

        nursery.start_soon(take)
        orders = [Message(json.dumps({"order": number}).encode() + bytes(200)) for number in range(count)]
        async for _ in sender.send_all(orders):
            pass


async def settle(delivery: Delivery, number: int) -> None:
    if number % 20 == 0:
        await delivery.reject("acme:no-such-article", "sold out")
    elif number % 20 == 10:
        await delivery.release()
    else:
        await delivery.accept()


async def guess(url: str, password: str) -> None:
    """Try passwords of globex until one is right."""
    for number in range(GUESSES + 1):
        tried = password if number == GUESSES else f"guess-{number}"
        try:
            async with logged_in(url, "globex", tried):
                pass
        except AuthenticationFailed:
            pass


async def pay(url: str, password: str) -> None:
    """Send the payments of cards to the address `cards`, where a spool stores them."""
    chance, start = Random(7), datetime.now(UTC) - timedelta(hours=1)
    events = [
        (chance.uniform(0, 3000), f"5000-0000-0000-{chance.randrange(500):04}", "store", chance.uniform(3, 90))
        for _ in range(CARDS)
    ]
    events += [(600.0, STOLEN, "online", 1.0), (1500.0, STOLEN, "atm", 900.0)]
    async with logged_in(url, "bank", password) as bank, bank.open_sender("cards") as cards:
        messages = [
            Message(
                json.dumps(
                    {"id": number, "card": card, "channel": channel, "amount": f"{amount:.2f}",
                     "t": (start + timedelta(seconds=after)).isoformat()}
                ).encode()
            )
            for number, (after, card, channel, amount) in enumerate(sorted(events))
        ]  # fmt: skip
        async for _, outcome in cards.send_all(messages):
            assert outcome is not None  # noqa: S101  # settled only once the spool has it on the disk


async def everything(url: str, password: str) -> None:
    async with trio.open_nursery() as nursery:
        for tenant, count in TENANTS.items():
            nursery.start_soon(work, url, tenant, count, password)
        nursery.start_soon(guess, url, password)
        nursery.start_soon(pay, url, password)


if __name__ == "__main__":
    secret = Path(sys.argv[2]).read_text(encoding="utf-8").strip()
    try:
        trio.run(everything, sys.argv[1], secret)
    except ExceptionGroup as failed:
        if failed.split(OSError)[1] is not None:
            raise
        sys.exit(f"no router answers at {sys.argv[1]}: start one with `trouter run`, or try again once it is up")
    print(json.dumps({"messages": TENANTS, "guesses": GUESSES, "stolen": STOLEN, "cards": CARDS + 2}))
