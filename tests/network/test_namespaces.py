"""Routers on machines of their own: lines that are slow, lose packets, break, or work in one direction only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.lines import Line, Namespace, why_not
from tests.networks import client_port, wait_for_reach, wait_for_row
from tests.routers import RunningRouter, running
from tests.tls.pki import Authority
from trouter.client import Connection, Message, Receiver, Sender, Tracker, connect
from trouter.wire.performatives import Accepted, Modified, Released

REASON = why_not()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(REASON), reason=REASON)]

COUNT = 50


class Land:
    """Routers, each in a namespace of its own, and lines between some, named after both; the second of a name dials.

    Each router needs a certificate to join, because lines are not loopback.
    """

    def __init__(
        self, folder: Path, stack: ExitStack, names: tuple[str, ...], router: str = "", more: str = ""
    ) -> None:
        """Start the routers; ``router`` has attributes of the sections `router`, ``more`` of listeners, connectors."""
        sites = sorted({name for pair in names for name in pair})
        self._places = {name: Namespace() for name in sites}
        for place in self._places.values():
            stack.callback(place.close)
        self.lines = {
            pair: Line(number, self._places[pair[0]], self._places[pair[1]]) for number, pair in enumerate(names)
        }
        for line in self.lines.values():
            stack.callback(line.close)
        authority = Authority(folder)
        self.routers: dict[str, RunningRouter] = {}
        for name in sites:
            text = self._text(name, authority, router, more)
            with self.inside(name):
                self.routers[name] = stack.enter_context(running(text, folder))
        wait_for_reach(self.routers)

    def _text(self, name: str, authority: Authority, router: str, more: str) -> str:
        lines = {pair: line for pair, line in self.lines.items() if name in pair}
        pair = authority.issue(f"CN={name}", *(line.addresses[names.index(name)] for names, line in lines.items()))
        text = [
            f"router {{\n mode: interior\n id: {name}\n raIntervalFluxSeconds: 1\n{router}}}",
            "listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }",
            f"sslProfile {{\n name: p\n caCertFile: {authority.file}",
            f" certFile: {pair.cert}\n privateKeyFile: {pair.key}\n}}",
        ]
        both = f" role: inter-router\n sslProfile: p\n saslMechanisms: EXTERNAL\n{more}"
        for names, line in lines.items():
            where = f" name: {names}\n host: {line.addresses[0]}\n port: 5671\n{both}"
            mine = "requireSsl: yes\n authenticatePeer: yes\n"
            text.append(f"listener {{\n{where} {mine}}}" if names[0] == name else f"connector {{\n{where}}}")
        return "\n".join(text) + "\n"

    def inside(self, name: str) -> AbstractContextManager[None]:
        """Be on the machine of a router."""
        return self._places[name].inside()

    @asynccontextmanager
    async def client(self, name: str) -> AsyncIterator[Connection]:
        """Connect a client on the machine of a router."""
        async with AsyncExitStack() as stack:
            with self.inside(name):
                url = f"amqp://127.0.0.1:{client_port(self.routers[name])}"
                connection = await stack.enter_async_context(connect(url))
            yield connection

    async def until(self, name: str, kind: str, right: Callable[[dict[str, Any]], bool], there: bool = True) -> None:
        """Wait until a router shows a row of ``kind`` that is ``right``, or (not ``there``) none any more."""

        def look() -> None:
            with self.inside(name):
                wait_for_row(self.routers[name], kind, right, there)

        await trio.to_thread.run_sync(look)

    async def until_led(self, name: str, other: str, hop: str | None) -> None:
        """Wait until a router's path to another leads over ``hop``, None for a neighbour."""
        await self.until(name, "router.node", lambda row: row["id"] == other and row["nextHop"] == hop)

    async def until_lost(self, name: str, other: str) -> None:
        """Wait until a router has no path to another."""
        await self.until(name, "router.node", lambda row: row["id"] == other, there=False)

    async def until_known(self, name: str, key: str) -> None:
        """Wait until a router knows that another listens on an address."""
        await self.until(name, "router.address", lambda row: row["key"] == key and row["remoteCount"] > 0)


class Traffic:
    """Messages from one router's client to another's, and the outcome of each."""

    def __init__(self, sender: Sender, receiver: Receiver) -> None:
        self._sender = sender
        self._receiver = receiver
        self.arrived: set[int] = set()
        self.outcomes: dict[int, object] = {}
        self.sent = 0

    async def receive(self) -> None:
        """Accept each message."""
        async for delivery in self._receiver:
            self.arrived.add(delivery.message.body)
            await delivery.accept()

    async def send(self, nursery: trio.Nursery, count: int = COUNT) -> None:
        """Send ``count`` messages, without waiting for outcomes in between; the end of ``nursery`` waits for all."""
        for _ in range(count):
            number, self.sent = self.sent, self.sent + 1
            nursery.start_soon(self._hear, number, await self._sender.submit(Message(number)))

    async def _hear(self, number: int, tracker: Tracker) -> None:
        self.outcomes[number] = await tracker.outcome()

    async def until_accepted(self) -> None:
        """Send one after the other until one is accepted."""
        while await self._sender.send(Message(-1)) != Accepted():
            pass

    def check(self) -> None:
        """Check that every message has one outcome, and that only messages that arrived are accepted."""
        assert sorted(self.outcomes) == list(range(self.sent))
        for number, outcome in self.outcomes.items():
            assert outcome in (Accepted(), Released(), Modified(delivery_failed=True))
            assert number in self.arrived or outcome != Accepted()


@asynccontextmanager
async def traffic(land: Land, here: str, there: str, address: str) -> AsyncIterator[Traffic]:
    async with (
        land.client(there) as receiving,
        receiving.open_receiver(address) as receiver,
        land.client(here) as sending,
        sending.open_sender(address) as sender,
        trio.open_nursery() as nursery,
    ):
        found = Traffic(sender, receiver)
        nursery.start_soon(found.receive)
        await land.until_known(here, f"M0{address}")
        yield found
        nursery.cancel_scope.cancel()


LOST = r"router {} is no longer a neighbour"


async def test_neighbours_hold_on_to_each_other_over_a_slow_line_that_loses_packets(tmp_path: Path) -> None:
    """Two seconds each way and 7 % of all packets lost; with the settings of docs/networks.md for such lines."""
    slow = {"router": " helloMaxAgeSeconds: 30\n", "more": " idleTimeoutSeconds: 120\n"}
    with ExitStack() as stack:
        land = Land(tmp_path, stack, ("AB",), **slow)
        line = land.lines["AB"]
        async with traffic(land, "A", "B", "far") as passing:
            line.delay_s, line.loss = 2.0, 0.07
            while not line.lost:  # with few packets chance may lose none
                async with trio.open_nursery() as nursery:
                    await passing.send(nursery)
            assert set(passing.outcomes.values()) == {Accepted()}
            passing.check()
            line.mend()
        for name, other in ("AB", "BA"):
            assert land.routers[name].matching(LOST.format(other)) == []


@pytest.fixture(scope="module")
def triangle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Land]:
    with ExitStack() as stack:
        yield Land(tmp_path_factory.mktemp("triangle"), stack, ("AB", "AC", "BC"))


@pytest.mark.parametrize("dead", [(True, False), (True, True)], ids=["from A", "both"])
async def test_a_line_that_is_dead_in_one_direction_is_given_up_by_both_and_taken_back(
    triangle: Land, dead: tuple[bool, bool]
) -> None:
    """Its connections stay open and idle. Messages go over C meanwhile; each has an outcome."""
    await triangle.until_led("A", "B", None)
    await triangle.until_led("B", "A", None)
    seen = {name: len(router.matching(LOST.format("."))) for name, router in triangle.routers.items()}
    async with traffic(triangle, "A", "B", f"one.way.{dead}") as passing:
        async with trio.open_nursery() as nursery:
            await passing.send(nursery)
            triangle.lines["AB"].dead = list(dead)
            await passing.send(nursery)
        await passing.until_accepted()  # while the line is dead
        await triangle.until_led("A", "B", "C")
        await triangle.until_led("B", "A", "C")
        triangle.lines["AB"].mend()
        await triangle.until_led("A", "B", None)
        await triangle.until_led("B", "A", None)
        async with trio.open_nursery() as nursery:
            await passing.send(nursery)
        passing.check()
    for name, other in ("AB", "BA"):
        triangle.routers[name].wait_for_line(LOST.format(other), seen[name] + 1)
    assert len(triangle.routers["C"].matching(LOST.format("."))) == seen["C"]


async def test_a_divided_network_becomes_whole_again(triangle: Land) -> None:
    """A is cut off from the others, which go on; its messages are released, and later arrive."""
    await triangle.until_led("A", "B", None)
    async with (
        traffic(triangle, "A", "B", "apart") as passing,
        traffic(triangle, "C", "B", "together") as other,
        trio.open_nursery() as nursery,
    ):
        await passing.send(nursery)
        for name in ("AB", "AC"):
            triangle.lines[name].cut()
        await passing.send(nursery)
        for other_name in "BC":
            await triangle.until_lost("A", other_name)
        async with trio.open_nursery() as waiting:
            await passing.send(waiting, 10)  # no receiver can be reached
            await other.send(waiting)
        assert Accepted() not in [passing.outcomes[passing.sent - number] for number in range(1, 11)]
        assert set(other.outcomes.values()) == {Accepted()}
        for name in ("AB", "AC"):
            triangle.lines[name].mend()
        await passing.until_accepted()
        async with trio.open_nursery() as waiting:
            await passing.send(waiting)
    passing.check()
    other.check()
