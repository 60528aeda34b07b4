"""A ring of four in which connections and routers fail while messages are on their way."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.management.node import Node, node_of
from tests.networks import (
    client_port,
    interior,
    network,
    router_port,
    until_known,
    until_led,
    until_linked,
    wait_for_links,
)
from tests.routers import RunningRouter, process
from trouter.client import ClientError, Message, Properties, Receiver, Sender, Tracker, connect
from trouter.wire.performatives import Accepted, Modified, Released

pytestmark = pytest.mark.slow

Routers = dict[str, RunningRouter]
#: Two paths of equal cost from A to D; the one over B is used while it exists.
RING = {"A": (), "D": (), "B": ("A", "D"), "C": ("A", "D")}
COUNT = 300


def url(routers: Routers, name: str) -> str:
    return f"amqp://127.0.0.1:{client_port(routers[name])}"


class Load:
    """A sender on A and a receiver on D, and the outcome of every message."""

    def __init__(self, sender: Sender, receiver: Receiver) -> None:
        self._sender = sender
        self._receiver = receiver
        self.accepted_there: set[int] = set()
        self.outcomes: dict[int, object] = {}
        self.sent = 0

    async def receive(self) -> None:
        """Accept each message."""
        async for delivery in self._receiver:
            self.accepted_there.add(delivery.message.body)
            await delivery.accept()

    async def send(self, count: int, nursery: trio.Nursery) -> None:
        """Send ``count`` messages, without waiting for outcomes in between."""
        for _ in range(count):
            number, self.sent = self.sent, self.sent + 1
            tracker = await self._sender.submit(Message(number))

            nursery.start_soon(self._hear, number, tracker)

    async def _hear(self, number: int, tracker: Tracker) -> None:
        self.outcomes[number] = await tracker.outcome()

    def check(self) -> None:
        """Check that every message has one outcome, and that only messages that the receiver accepted are accepted."""
        assert len(self.outcomes) == self.sent
        accepted = {number for number, outcome in self.outcomes.items() if outcome == Accepted()}
        assert accepted <= self.accepted_there
        others = [outcome for outcome in self.outcomes.values() if outcome != Accepted()]
        assert all(outcome in (Released(), Modified(delivery_failed=True)) for outcome in others)


@asynccontextmanager
async def load(routers: Routers, address: str) -> AsyncIterator[Load]:
    async with (
        connect(url(routers, "D")) as receiving,
        receiving.open_receiver(address) as receiver,
        connect(url(routers, "A")) as sending,
        sending.open_sender(address) as sender,
        trio.open_nursery() as nursery,
    ):
        under = Load(sender, receiver)
        nursery.start_soon(under.receive)
        yield under
        nursery.cancel_scope.cancel()


async def disturb(under: Load, happens: Callable[[], None]) -> None:
    """Send before, during and after an event, and wait for all outcomes."""
    async with trio.open_nursery() as nursery:
        await under.send(COUNT, nursery)
        happens()
        await under.send(COUNT, nursery)
    under.check()
    while True:  # the flow goes on
        async with trio.open_nursery() as nursery:
            await under.send(1, nursery)
        if under.outcomes[under.sent - 1] == Accepted():
            return


@pytest.fixture(scope="module")
def routers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Routers]:
    with network(tmp_path_factory.mktemp("failures"), RING, router="raIntervalFluxSeconds: 1") as started:
        wait_for_links(started, RING)
        yield started


async def test_a_silent_router_is_given_up_and_taken_back(routers: Routers) -> None:
    """The process is stopped for a while: its connections stay open and idle. Deliveries to it have failed, or wait."""
    await until_led(routers["A"], "D", "B")
    async with load(routers, "silent.x") as under:
        await disturb(under, lambda: os.kill(routers["B"].process.pid, signal.SIGSTOP))
        os.kill(routers["B"].process.pid, signal.SIGCONT)
        await until_led(routers["A"], "D", "B")
        async with trio.open_nursery() as nursery:
            await under.send(COUNT, nursery)
        under.check()


async def test_a_deleted_connector_moves_the_path_and_a_cheaper_new_one_takes_the_path(routers: Routers) -> None:
    async with load(routers, "deleted.x") as under:
        with node_of(client_port(routers["B"])) as node:
            [row] = [row for row in node.query("connector") if row["name"] == "toD"]
            await disturb(under, lambda: _delete(node, "toD"))
            await until_led(routers["A"], "D", "C")
            other_end = {
                "host": row["host"],
                "port": row["port"],
                "role": "inter-router",
                "saslMechanisms": "ANONYMOUS",
            }
            node.create("connector", {"name": "again", **other_end, "cost": "5"})
            await until_linked(routers["A"], "B", ["A", "D"])
            await until_led(routers["A"], "D", "C")  # a more expensive path changes nothing
            async with trio.open_nursery() as nursery:
                await under.send(50, nursery)
            assert all(under.outcomes[under.sent - number] == Accepted() for number in range(1, 51))
            _delete(node, "again")
            node.create("connector", {"name": "toD", **other_end})
            await until_led(routers["A"], "D", "B")
            async with trio.open_nursery() as nursery:
                await under.send(50, nursery)
            under.check()


def _delete(node: Node, connector: str) -> None:
    node.get("DELETE", type="connector", name=connector, code=204)


async def test_a_router_that_is_killed_under_load_and_started_again(routers: Routers, tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_listen_until_the_end, routers)
        async with load(routers, "killed.x") as under:
            await until_known(routers["A"], "M0only.at.b", 1)
            await disturb(under, routers["B"].process.kill)
            await until_led(routers["A"], "D", "C")
    others = {name: routers[name] for name in "AD"}
    with ExitStack() as stack:
        text = interior("B", {name: router_port(router) for name, router in others.items()})
        again = stack.enter_context(process(text, tmp_path))
        again.wait_for_line("Operational")
        await until_led(routers["A"], "B", None)
        await until_known(routers["A"], "M0only.at.b", 0)  # no receiver is there since the start
        async with connect(url(routers, "A")) as asking, asking.open_sender() as sender:
            assert await sender.send(Message("x", Properties(to="only.at.b"))) == Released()
        again.stop()


async def _listen_until_the_end(routers: Routers) -> None:
    try:
        async with connect(url(routers, "B")) as doomed, doomed.open_receiver("only.at.b") as receiver:
            await receiver.receive()
    except* ClientError:
        pass
