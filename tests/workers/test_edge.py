"""An edge router with two workers and its interior router, as processes: each worker has an uplink of its own."""

from __future__ import annotations

import csv
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from tests.management.node import node_of
from tests.rabbitmq import connector, needs_rabbitmq, nodes
from tests.routers import DEADLINE_S, ROOT, RunningRouter, process, running, stopped_cleanly
from tests.waiting import until
from tests.workers.clients import connected, page
from trouter.client import ACCEPTED, Message, Receiver

HUB, FIRST, SECOND = "hub", "A", "A.2"
ADDRESSES = "".join(
    f"address {{\n    prefix: {name}\n    distribution: {name}\n}}\n" for name in ("closest", "balanced", "multicast")
)
LISTENER = "listener {\n    host: 127.0.0.1\n    port: 0\n    saslMechanisms: ANONYMOUS\n}\n"
HUB_FILE = (
    "router {\n    id: hub\n    mode: interior\n}\n"
    + LISTENER
    + LISTENER.replace("port: 0", "port: 0\n    role: edge")
    + ADDRESSES
)
TWO = "router {\n    id: A\n    mode: edge\n    workers: 2\n    drainTimeoutSeconds: 5\n}\n"
OPERATOR = LISTENER.replace("port: 0", "port: 0\n    drains: no")
PAGES = "listener {\n    host: 127.0.0.1\n    port: 0\n    http: yes\n}\n"
ESTABLISHED = r"\[W{place}\] .*Edge connection \(id=\d+\) to interior established"

pytestmark = pytest.mark.trio


def uplink_to(hub: RunningRouter, name: str = "up") -> str:
    return f"connector {{\n    name: {name}\n    host: 127.0.0.1\n    port: {hub.ports[1]}\n    role: edge\n}}\n"


@contextmanager
def two_workers(hub: RunningRouter, folder: Path, more: str = "") -> Iterator[RunningRouter]:
    """Run an edge router with two workers, which must stop cleanly."""
    with process(TWO + LISTENER + OPERATOR + PAGES + ADDRESSES + uplink_to(hub) + more, folder) as router:
        for place in (1, 2):
            router.wait_for_line(ESTABLISHED.format(place=place))
        router.wait_for_line(r"MAIN \(notice\) 2 workers serve")
        with stopped_cleanly(router):
            yield router


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with running(HUB_FILE, tmp_path_factory.mktemp("hub")) as hub:
        yield hub


@pytest.fixture(scope="module")
def router(hub: RunningRouter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    """Return one router for the tests that leave it as it was."""
    with two_workers(hub, tmp_path_factory.mktemp("workers")) as router:
        yield router


async def take(receiver: Receiver, taken: list[object]) -> None:
    async for delivery in receiver:
        taken.append(delivery.message.body)
        await delivery.accept()


@pytest.mark.parametrize("there", [HUB, FIRST, SECOND])
@pytest.mark.parametrize("here", [HUB, FIRST, SECOND])
async def test_a_message_crosses_and_its_outcome_comes_back(
    router: RunningRouter, hub: RunningRouter, here: str, there: str
) -> None:
    ports = {HUB: hub.port, FIRST: router.port, SECOND: router.port}
    async with (
        connected(ports[there], there) as goes,
        connected(ports[here], here) as comes,
        goes.open_receiver("jobs") as receiver,
        comes.open_sender("jobs") as sender,
    ):
        tracker = await sender.submit(Message(body="one"))
        delivery = await receiver.receive()
        assert delivery.message.body == "one"
        await delivery.reject("amqp:precondition-failed", "not wanted")
        assert "not wanted" in repr(await tracker.outcome())


@pytest.mark.parametrize("address", ["closest", "balanced", "multicast"])
async def test_a_worker_shares_with_the_other_as_with_another_edge_router(router: RunningRouter, address: str) -> None:
    near: list[object] = []
    far: list[object] = []
    async with (
        connected(router.port, FIRST) as first,
        connected(router.port, SECOND) as second,
        trio.open_nursery() as nursery,
        second.open_receiver(address, credit=100) as far_receiver,
        first.open_sender(address) as sender,
    ):
        nursery.start_soon(take, far_receiver, far)
        assert await sender.send(Message(body="known")) == ACCEPTED  # the interior router has told of the consumer
        async with first.open_receiver(address, credit=100) as near_receiver:
            nursery.start_soon(take, near_receiver, near)
            trackers = [await sender.submit(Message(body=number)) for number in range(20)]
            assert all([await each.outcome() == ACCEPTED for each in trackers])
            nursery.cancel_scope.cancel()
    assert far.pop(0) == "known"
    match address:
        case "multicast":
            assert near == far == list(range(20))
        case "closest":
            assert (near, far) == (list(range(20)), [])
        case _:
            assert sorted(near + far) == list(range(20))  # type: ignore[type-var]  # numbers
            assert len(near) >= 5
            assert len(far) >= 5


@pytest.mark.parametrize("address", ["closest", "balanced"])
async def test_the_interior_router_sends_to_the_consumers_of_both_workers(
    router: RunningRouter, hub: RunningRouter, address: str
) -> None:
    taken: dict[str, list[object]] = {FIRST: [], SECOND: []}
    sent = 0
    async with (
        connected(router.port, FIRST) as first,
        connected(router.port, SECOND) as second,
        connected(hub.port, HUB) as there,
        first.open_receiver(address) as of_first,
        second.open_receiver(address) as of_second,
        there.open_sender(address) as sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(take, of_first, taken[FIRST])
        nursery.start_soon(take, of_second, taken[SECOND])
        with trio.fail_after(DEADLINE_S):
            while not all(taken.values()):
                assert await sender.send(Message(body=sent)) == ACCEPTED
                sent += 1
        nursery.cancel_scope.cancel()
    assert sorted(taken[FIRST] + taken[SECOND]) == list(range(sent))  # type: ignore[type-var]  # numbers


async def test_a_request_from_the_network_is_answered_at_each_worker(router: RunningRouter, hub: RunningRouter) -> None:
    for name in (FIRST, SECOND):
        async with (
            connected(router.port, name) as client,
            client.open_receiver(None, dynamic=True) as replies,
            connected(hub.port, HUB) as other,
            other.open_sender(replies.address) as sender,
        ):
            assert replies.address.split("/")[-2] == name
            tracker = await sender.submit(Message(body="reply"))
            delivery = await replies.receive()
            await delivery.accept()
            assert await tracker.outcome() == ACCEPTED


async def run(*arguments: str) -> str:
    command = [sys.executable, "-m", "trouter", *arguments]
    return (await trio.run_process(command, capture_stdout=True, cwd=ROOT)).stdout.decode()


async def test_management_shows_one_edge_router_with_an_uplink_at_each_worker(
    router: RunningRouter, hub: RunningRouter
) -> None:
    edges = await run("stat", "--edge", "-b", f"127.0.0.1:{hub.port}")
    assert {FIRST, SECOND} <= set(edges.split())
    for _ in (FIRST, SECOND):  # the next connection comes to the other one
        shown = await run("stat", "-c", "--csv", "-b", f"127.0.0.1:{router.port}")
        rows = list(csv.DictReader(shown.splitlines()))
        assert [each["worker"] for each in rows if each["role"] == "edge"] == ["1", "2"]
        assert "edge" in await run("stat", "-g", "-b", f"127.0.0.1:{router.port}")
    alone = await run("stat", "-c", "--csv", "-b", f"127.0.0.1:{hub.port}", "-d", SECOND)
    assert [each["role"] for each in csv.DictReader(alone.splitlines()) if each["container"] == HUB] == ["edge"]


async def wait_for(router: RunningRouter, pattern: str, count: int = 1) -> None:
    await trio.to_thread.run_sync(router.wait_for_line, pattern, count)


@pytest.mark.parametrize("place", [1, 2])
async def test_a_killed_worker_comes_back_with_its_uplink(
    router: RunningRouter, hub: RunningRouter, place: int
) -> None:
    name = FIRST if place == 1 else SECOND
    found = router.wait_for_line(rf"\[W{place}\] Operational, 1 Threads Running \(process ID (\d+)\)")
    os.kill(int(found[1]), signal.SIGKILL)
    await wait_for(router, rf"MAIN \(critical\) worker {place} \(process ID \d+\) ended by SIGKILL: it is st")
    await wait_for(router, ESTABLISHED.format(place=place), 2)
    async with (
        connected(router.port, name) as goes,
        connected(hub.port, HUB) as comes,
        goes.open_receiver("again") as receiver,
        comes.open_sender("again") as sender,
    ):
        tracker = await sender.submit(Message(body="back"))
        await (await receiver.receive()).accept()
        assert await tracker.outcome() == ACCEPTED


async def workers_of(router: RunningRouter, role: str) -> list[str]:
    """Return the worker of each connection of a role."""
    shown = await run("stat", "-c", "--csv", "-b", f"127.0.0.1:{router.port}")
    return [each["worker"] for each in csv.DictReader(shown.splitlines()) if each["role"] == role]


async def test_every_worker_dials_an_uplink_that_the_file_gets(router: RunningRouter, hub: RunningRouter) -> None:
    before = router.configuration.read_text(encoding="utf-8")
    broker = uplink_to(hub, "broker").replace("role: edge", "role: route-container")
    broker = broker.replace(str(hub.ports[1]), str(hub.port))
    router.configuration.write_text(before + uplink_to(hub, "second") + broker, encoding="utf-8")
    router.process.send_signal(signal.SIGHUP)
    with trio.fail_after(DEADLINE_S):
        while await workers_of(router, "edge") != ["1", "1", "2", "2"]:
            pass
        while not (of_broker := await workers_of(router, "route-container")):
            pass
    assert of_broker == ["1"]


async def test_a_drain_empties_both_workers_and_leaves_the_uplinks(router: RunningRouter) -> None:
    operator = f"127.0.0.1:{router.ports[1]}"
    async with connected(router.port, FIRST), connected(router.port, SECOND):
        await run("drain", "--over", "0", "-b", operator)
    shown = await run("stat", "-c", "--csv", "-b", operator)
    left = [each["role"] for each in csv.DictReader(shown.splitlines())]
    assert left.count("edge") >= 2
    assert left.count("normal") == 1  # that of stat
    opened = [rf"\[W{place}\] Listening on 127\.0\.0\.1:(\d+)" for place in (1, 2)]
    before = [len(router.matching(pattern)) for pattern in opened]
    await run("drain", "--cancel", "-b", operator)
    for pattern, count in zip(opened, before, strict=True):
        await wait_for(router, pattern, count + 1)
    port = int(router.wait_for_line(opened[0], before[0] + 1)[1])  # port 0 of the file may be another one now
    async with connected(port, FIRST), connected(port, SECOND):
        pass


async def test_without_the_interior_router_each_worker_serves_its_own_clients(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    (tmp_path / "edge").mkdir()
    with running(HUB_FILE, tmp_path / "hub") as own_hub, two_workers(own_hub, tmp_path / "edge") as router:
        assert page(router, "readyz") == (200, "OK")
        await trio.to_thread.run_sync(own_hub.stop)
        for place in (1, 2):
            await wait_for(router, rf"\[W{place}\] .*Connection to .* failed")
        status, text = page(router, "readyz")
        assert status == 503
        assert re.search(r"worker 2: .*uplink", text)
        for name in (FIRST, SECOND):
            async with (
                connected(router.port, name) as client,
                client.open_receiver("own") as receiver,
                client.open_sender("own") as sender,
            ):
                tracker = await sender.submit(Message(body="within"))
                await (await receiver.receive()).accept()
                assert await tracker.outcome() == ACCEPTED
            shown = await run("manage", "query", "--type", "router", "-b", f"127.0.0.1:{router.port}")
            assert '"uplinkFault": ""' not in shown
            assert '"uplinkFault": "' in shown


BROKER = "connector {{\n    name: broker\n    host: 127.0.0.1\n    port: {port}\n    role: route-container\n}}\n"
ROUTES = "".join(
    f"linkRoute {{\n    prefix: far\n    direction: {way}\n    connection: broker\n}}\n" for way in ("in", "out")
)
#: The keys of these routes in the table of the interior router.
KEYS = {"Cfar", "Dfar"}


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """Yield the ports of an interior router, of an edge router with two workers, and of the broker of its first one."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("hub", "broker", "edge")}
    with (
        running(HUB_FILE, folders["hub"]) as hub,
        running("router {\n    id: B\n}\n" + LISTENER, folders["broker"]) as broker,
        two_workers(hub, folders["edge"], BROKER.format(port=broker.port) + ROUTES) as edge,
        node_of(hub.port) as node,
    ):
        until(lambda: KEYS.issubset(row["key"] for row in node.query("router.address", ["key"])), "the link routes")
        yield {HUB: hub.port, FIRST: edge.port, SECOND: edge.port, "B": broker.port}


@pytest.mark.parametrize("place", [HUB, FIRST, SECOND])
async def test_link_routes_lead_to_the_broker_of_the_first_worker(ends: dict[str, int], place: str) -> None:
    address = f"far.{place}"
    async with (
        connected(ends[place], place) as client,
        connected(ends["B"], "B") as there,
        there.open_receiver(address) as taken,
        client.open_sender(address) as sender,
        client.open_receiver(f"{address}.back") as receiver,
        there.open_sender(f"{address}.back") as answers,
    ):
        tracker = await sender.submit(Message(body="to the broker"))
        delivery = await taken.receive()
        await delivery.reject("amqp:precondition-failed", "not wanted")
        assert "not wanted" in repr(await tracker.outcome())
        tracker = await answers.submit(Message(body="from the broker"))
        delivery = await receiver.receive()
        assert delivery.message.body == "from the broker"
        await delivery.accept()
        assert await tracker.outcome() == ACCEPTED


#: A queue of the broker that messages pass through on their way.
WAYPOINT = "address {\n    prefix: queue\n    waypoint: yes\n}\n"
AUTO_LINKS = "".join(
    f"autoLink {{\n    address: queue.first\n    externalAddress: /queue/waypoint\n    direction: {way}\n"
    "    connection: broker\n}\n"
    for way in ("in", "out")
)


@pytest.mark.interop
@needs_rabbitmq
async def test_messages_of_each_worker_pass_through_a_queue_of_the_broker_of_the_first(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("hub", "broker", "edge")}
    for each in folders.values():
        each.mkdir()
    with (
        nodes(folders["broker"]) as (rabbit,),
        running(HUB_FILE + WAYPOINT, folders["hub"]) as hub,
        two_workers(hub, folders["edge"], connector("broker", rabbit) + WAYPOINT + AUTO_LINKS) as edge,
    ):
        ports = {HUB: hub.port, FIRST: edge.port, SECOND: edge.port}
        for here, there in ((FIRST, SECOND), (SECOND, FIRST), (SECOND, SECOND), (HUB, SECOND), (SECOND, HUB)):
            async with (
                connected(ports[there], there) as goes,
                connected(ports[here], here) as comes,
                goes.open_receiver("queue.first") as receiver,
                comes.open_sender("queue.first") as sender,
            ):
                tracker = await sender.submit(Message(body=f"{here} to {there}"))
                delivery = await receiver.receive()
                assert delivery.message.body == f"{here} to {there}"
                await delivery.accept()
                assert await tracker.outcome() == ACCEPTED
