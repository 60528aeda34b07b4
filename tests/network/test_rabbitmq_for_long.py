"""RabbitMQ behind routers in long runs: queues in shards, and brokers and routers that are killed."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
import trio
from proton import Delivery
from proton import Message as ProtonMessage

from tests.e2e.by_proton import Client, Ear
from tests.management.node import node_of
from tests.network.test_rabbitmq import addresses, auto_links
from tests.networks import client_port, interior, router_port
from tests.rabbitmq import EACH_VERSION, V3, RabbitMQ, Version, connector, needs_rabbitmq, nodes
from tests.routers import DEADLINE_S, running
from tests.waiting import until
from trouter.client import ACCEPTED, Message, connect
from trouter.wire.message import Header

pytestmark = [pytest.mark.long, pytest.mark.interop]

#: Status and last error of an auto link.
ACTIVE, INACTIVE = ("active", ""), ("inactive", "")
#: Count of messages of the test that kills brokers and routers, and of those under way at once.
COUNT = 100_000
IN_FLIGHT = 500
#: Messages between two lines of progress.
PORTION = 10_000
#: Counts of accepted messages at which the broker or router is killed.
BROKER_KILLS = (15_000, 45_000, 75_000)
ROUTER_KILL = 60_000


@pytest.fixture(scope="module")
def rabbits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RabbitMQ]]:
    with nodes(tmp_path_factory.mktemp("brokers"), V3, V3, V3) as made:
        yield made


def waypoint(name: str, external: str = "") -> str:
    """Return the auto links of a queue as waypoint, on the connection of that name."""
    other = f", externalAddr: {external}" if external else ""
    return "".join(
        f"autoLink {{ addr: queue.first, dir: {way}, connection: {name}{other} }}\n" for way in ("in", "out")
    )


@needs_rabbitmq
def test_a_queue_in_shards_and_one_more_shard_while_messages_come(rabbits: list[RabbitMQ], tmp_path: Path) -> None:
    """Two brokers share a queue's messages; a third is added through management, and takes its part."""
    text = f"""
        router {{ mode: interior, id: R }}
        listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
        {connector("broker1", rabbits[0])}
        {connector("broker2", rabbits[1])}
        address {{ prefix: queue, waypoint: yes }}
        {waypoint("broker1")}
        {waypoint("broker2")}
    """
    with running(text, tmp_path) as router:
        until(lambda: addresses(router, "queue.first").get(0, (0,))[0] == 2, "both shards")
        client = Client(Ear(), router.port)
        sender = client.create_sender("queue.first")
        for number in range(20):
            assert sender.send(ProtonMessage(body=number, durable=True)).remote_state == Delivery.ACCEPTED
        assert addresses(router, "queue.first")[0] == (2, 20, 20)
        with node_of(router.port) as node:
            node.create(
                "connector",
                {"name": "broker3", "role": "route-container", "host": "127.0.0.1", "port": str(rabbits[2].port)},
            )
            for way in ("in", "out"):
                node.create(
                    "router.config.autoLink", {"address": "queue.first", "direction": way, "connection": "broker3"}
                )
        sent = 20

        def third_shard() -> bool:
            nonlocal sent
            assert sender.send(ProtonMessage(body=sent, durable=True)).remote_state == Delivery.ACCEPTED
            sent += 1
            return addresses(router, "queue.first")[0][0] == 3

        until(third_shard, "the third shard")
        for _ in range(30):
            assert sender.send(ProtonMessage(body=sent, durable=True)).remote_state == Delivery.ACCEPTED
            sent += 1
        with node_of(router.port) as node:
            out = [row for row in node.query("router.link") if row["owningAddr"] == "M0queue.first"]
        shares = [row["acceptedCount"] for row in out if row["linkDir"] == "out"]
        assert len(shares) == 3
        assert min(shares) >= 5
        assert sum(shares) == sent
        receiver = client.create_receiver("queue.first", credit=50)
        came: list[int] = []
        for _ in range(sent):
            body = receiver.receive(timeout=DEADLINE_S).body
            assert isinstance(body, int)
            came.append(body)
            receiver.accept()
        assert sorted(came) == list(range(sent))
        receiver.close()
        assert addresses(router, "queue.first") == {0: (3, sent, sent), 1: (0, sent, sent)}
        client.close()


@needs_rabbitmq
def test_the_state_of_auto_links_follows_the_broker(rabbits: list[RabbitMQ], tmp_path: Path) -> None:
    """Inactive without a broker, active with one, inactive when it is killed, and active when it is back."""
    node = rabbits[0]
    text = f"""
        router {{ mode: interior, id: R }}
        listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
        {connector("broker", node)}
        address {{ prefix: queue, waypoint: yes }}
        {waypoint("broker", "/queue/followed")}
    """
    node.kill()
    gone = {("queue.first", "in"): ("inactive", ""), ("queue.first", "out"): ("inactive", "")}
    there = dict.fromkeys(gone, ACTIVE)
    with running(text, tmp_path) as router:
        router.wait_for_line("Connection to .* failed")
        assert auto_links(router) == gone
        for _ in range(2):
            node.start()
            until(lambda: auto_links(router) == there, "auto links")
            node.kill()
            until(lambda: auto_links(router) == gone, "their end")
        node.start()
        until(lambda: auto_links(router) == there, "auto links")


class Line:
    """Three routers in a line: A beside the broker, B between, C for clients. B dials both and may be killed."""

    def __init__(self, rabbit: RabbitMQ, folder: Path, stack: ExitStack) -> None:
        self.rabbit = rabbit
        self._folder, self._stack = folder, stack
        address = "address { prefix: queue, waypoint: yes }\n"
        beside = address + connector("broker", rabbit) + waypoint("broker", rabbit.address("line"))
        self.a = stack.enter_context(running(interior("A", {}, beside), folder))
        self.c = stack.enter_context(running(interior("C", {}, address), folder))
        self._between = interior("B", {"A": router_port(self.a), "C": router_port(self.c)}, address)
        self.start_between()

    def start_between(self) -> None:
        self.b = self._stack.enter_context(running(self._between, self._folder))

    def kill_between(self) -> None:
        self.b.process.send_signal(signal.SIGKILL)
        self.b.wait()

    async def kill_broker(self) -> None:
        """Kill the broker, wait until the auto links fail, start it again, and wait until they are active."""
        await trio.to_thread.run_sync(self.rabbit.kill)
        await self.until_auto_links(INACTIVE)
        await trio.to_thread.run_sync(self.rabbit.start)
        await self.until_auto_links(ACTIVE)

    async def replace_between(self) -> None:
        """Kill the router between, and start another one in its place.

        Messages on their way to receivers then count as modified, for which RabbitMQ 3.10 ends the session of the auto
        links; they are tried again. 4.0 knows the outcome.
        """
        await trio.to_thread.run_sync(self.kill_between)
        await trio.to_thread.run_sync(self.start_between)
        await self.until_auto_links(ACTIVE)

    async def until_auto_links(self, state: tuple[str, str]) -> None:
        """Wait until both auto links have this status and last error."""
        await trio.to_thread.run_sync(until, lambda: set(auto_links(self.a).values()) == {state}, f"{state}")

    def leave_logs(self) -> None:
        """Write the logs of the routers and of the broker into the test's folder."""
        logs = {"A": self.a.text(), "B": self.b.text(), "C": self.c.text(), "rabbitmq": self.rabbit.text()}
        for name, text in logs.items():
            (self._folder / f"{name}.log").write_text(text)


class Load:
    """Send numbers until each is accepted, and receive until each has arrived."""

    def __init__(self, port: int, progress: Callable[[str], None]) -> None:
        self.url = f"amqp://127.0.0.1:{port}"
        self.accepted = 0
        self.again = 0
        self.twice = 0
        self.came = bytearray(COUNT)
        self.missing = COUNT
        self._progress = progress
        self._told = 0
        self._changed = trio.Event()

    def _change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
        if self.accepted + COUNT - self.missing >= self._told + PORTION:
            self._told = self.accepted + COUNT - self.missing
            self._progress(str(self))

    def __str__(self) -> str:
        return (
            f"{self.accepted:,} accepted, {COUNT - self.missing:,} came, {self.again:,} sent again, "
            f"{self.twice:,} came twice"
        )

    async def until_accepted(self, count: int) -> None:
        while self.accepted < count:
            await self._changed.wait()

    async def send(self) -> None:
        left: list[int] = list(range(COUNT))
        async with connect(self.url) as connection, connection.open_sender("queue.first") as sender:
            while left:
                messages = [_Numbered(number) for number in left]
                left = []
                async for message, outcome in sender.send_all(messages, in_flight=IN_FLIGHT):
                    if outcome == ACCEPTED:
                        self.accepted += 1
                        self._change()
                    else:
                        left.append(message.number)
                        self.again += 1

    async def receive(self) -> None:
        async with (
            connect(self.url) as connection,
            connection.open_receiver("queue.first", credit=IN_FLIGHT) as receiver,
        ):
            while self.missing:
                delivery = await receiver.receive()
                number = delivery.message.body
                assert isinstance(number, int)
                if self.came[number]:
                    self.twice += 1
                else:
                    self.came[number] = 1
                    self.missing -= 1
                    self._change()
                await delivery.accept()


class _Numbered(Message):
    def __init__(self, number: int) -> None:
        super().__init__(number, header=Header(durable=True))
        self.number = number


@pytest.mark.parametrize("version", EACH_VERSION)
async def test_every_accepted_message_arrives_although_brokers_and_routers_are_killed(
    version: Version, tmp_path: Path
) -> None:
    """The queue is durable and the messages are persistent; senders send released messages again."""
    began_s = trio.current_time()

    def progress(text: str) -> None:
        print(f"\n[{trio.current_time() - began_s:6.1f} s] {text}", end="", flush=True)  # noqa: T201 - seen with -s

    with ExitStack() as stack:
        [rabbit] = stack.enter_context(nodes(tmp_path / "broker", version, queues=["line"]))
        line = await trio.to_thread.run_sync(partial(Line, rabbit, tmp_path, stack))
        stack.callback(line.leave_logs)
        await line.until_auto_links(ACTIVE)
        load = Load(client_port(line.c), progress)
        with trio.fail_after(20 * DEADLINE_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(load.receive)
                nursery.start_soon(load.send)
                for count in sorted((*BROKER_KILLS, ROUTER_KILL)):
                    await load.until_accepted(count)
                    progress(f"killed at {load}")
                    await (line.replace_between() if count == ROUTER_KILL else line.kill_broker())
                    progress(f"started at {load}")
        assert load.accepted == COUNT
        assert load.missing == 0
        progress(f"RabbitMQ {version.name}: {load}\n")
        await line.until_auto_links(ACTIVE)
        assert len(line.a.matching("Auto Link Activated")) >= 2 * (1 + len(BROKER_KILLS))
        assert not line.a.matching("transfer-limit-exceeded")
        for router in (line.a, line.b, line.c):
            router.assert_no_fault_of_ours()
