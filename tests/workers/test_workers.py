"""Routers with two workers, as processes: what they pass on, and what they survive."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest
import trio

from tests.house.sources import ROOT
from tests.management.node import Node, node_of
from tests.routers import DEADLINE_S, RunningRouter, process, running, stopped_cleanly, watched
from tests.workers.clients import connected
from trouter.client import ACCEPTED, ClientError, Connection, Message, Receiver, Sender, connect

FIRST, SECOND = "A", "A.2"
TWO = "router {\n    id: A\n    workers: 2\n    drainTimeoutSeconds: 5\n}\n"
LISTENER = "listener {\n    host: 127.0.0.1\n    port: 0\n    saslMechanisms: ANONYMOUS\n}\n"
ADDRESSES = "".join(
    f"address {{\n    prefix: {name}\n    distribution: {name}\n}}\n" for name in ("closest", "balanced", "multicast")
)
SERVES = r"MAIN \(notice\) 2 workers serve"

#: The messages that a sender may have unsettled.
_CREDIT = 250

pytestmark = pytest.mark.trio


@contextmanager
def two_workers(folder: Path, more: str = "") -> Iterator[RunningRouter]:
    """Run a router with two workers, which must stop cleanly if the test has not stopped it."""
    with process(TWO + LISTENER + ADDRESSES + more, folder) as router:
        router.wait_for_line(SERVES)
        with stopped_cleanly(router):
            yield router


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    """Return a router that stands for a broker."""
    with running("router {\n    id: B\n}\n" + LISTENER, tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture(scope="module")
def router(broker: RunningRouter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    """Return one router for the tests that leave it as it was; it dials the broker."""
    routes = "".join(
        f"linkRoute {{\n    prefix: far\n    direction: {way}\n    connection: broker\n}}\n" for way in ("in", "out")
    )
    dial = (
        f"connector {{\n    name: broker\n    host: 127.0.0.1\n    port: {broker.port}\n    role: route-container\n}}\n"
    )
    with two_workers(tmp_path_factory.mktemp("workers"), dial + routes) as running_router:
        yield running_router


@asynccontextmanager
async def both(port: int) -> AsyncIterator[tuple[Connection, Connection]]:
    """Connect to both workers."""
    async with connected(port, FIRST) as first, connected(port, SECOND) as second:
        yield first, second


def pid_of(router: RunningRouter, place: int) -> int:
    """Return the process id of the worker that runs with this number now."""
    pattern = rf"\[W{place}\] Operational, 1 Threads Running \(process ID (\d+)\)"
    router.wait_for_line(pattern)
    found = router.matching(pattern)[-1]
    return int(found.rpartition("process ID ")[2].rstrip(")"))


async def wait_for(router: RunningRouter, pattern: str, count: int = 1) -> None:
    await trio.to_thread.run_sync(router.wait_for_line, pattern, count)


@pytest.mark.parametrize("way", [(0, 1), (1, 0)], ids=["to the second", "to the first"])
async def test_a_message_crosses_to_the_other_worker_and_its_outcome_comes_back(
    router: RunningRouter, way: tuple[int, int]
) -> None:
    async with (
        both(router.port) as ends,
        ends[way[1]].open_receiver("jobs") as receiver,
        ends[way[0]].open_sender("jobs") as sender,
    ):
        tracker = await sender.submit(Message(body="one"))
        delivery = await receiver.receive()
        assert delivery.message.body == "one"
        await delivery.reject("amqp:precondition-failed", "not wanted")
        assert "not wanted" in repr(await tracker.outcome())


async def take(receiver: Receiver, taken: list[object]) -> None:
    async for delivery in receiver:
        taken.append(delivery.message.body)
        await delivery.accept()


@pytest.mark.parametrize("address", ["closest", "balanced", "multicast"])
async def test_consumers_of_both_workers_count_as_those_of_one_router(router: RunningRouter, address: str) -> None:
    here: list[object] = []
    there: list[object] = []
    async with (
        both(router.port) as (first, second),
        trio.open_nursery() as nursery,
        second.open_receiver(address, credit=100) as far,
        first.open_sender(address) as sender,
    ):
        nursery.start_soon(take, far, there)
        assert await sender.send(Message(body="known")) == ACCEPTED  # the first worker knows of the consumer
        async with first.open_receiver(address, credit=100) as near:
            nursery.start_soon(take, near, here)
            trackers = [await sender.submit(Message(body=number)) for number in range(20)]
            assert all([await each.outcome() == ACCEPTED for each in trackers])
            nursery.cancel_scope.cancel()
    assert there.pop(0) == "known"
    if address == "multicast":
        assert here == there == list(range(20))
    else:
        assert sorted(here + there) == list(range(20))  # type: ignore[type-var]  # numbers
        assert len(here) >= 5
        assert len(there) >= 5


async def test_a_routed_link_reaches_the_broker_of_the_first_worker(
    router: RunningRouter, broker: RunningRouter
) -> None:
    await wait_for(router, r"\[W1\] .*Connection Opened: dir=out")
    assert not router.matching(r"\[W2\] .*Configured Connector: 127")
    async with (
        connected(router.port, SECOND) as second,
        connect(f"amqp://127.0.0.1:{broker.port}") as there,
        there.open_receiver("far.jobs") as receiver,
        second.open_sender("far.jobs") as sender,
    ):
        tracker = await sender.submit(Message(body="routed"))
        delivery = await receiver.receive()
        await delivery.accept()
        assert await tracker.outcome() == ACCEPTED
        with node_of(router.port) as node:
            links = node.query("router.link", ["owningAddr", "linkDir", "worker"])
        routed = [each for each in links if each["owningAddr"] == "M0far.jobs"]
        assert [(each["linkDir"], each["worker"]) for each in routed] == [("out", 1), ("in", 2)]


async def test_a_listener_on_every_address_serves(tmp_path: Path) -> None:
    """It has a socket for each kind of address."""
    everywhere = LISTENER.replace("    host: 127.0.0.1\n", "")
    with process(TWO + everywhere, tmp_path) as router:
        await wait_for(router, SERVES)
        with stopped_cleanly(router):
            async with both(router.port):
                pass
            if len(router.ports) == 2 * 2:  # with IPv6
                async with connect(f"amqp://[::1]:{router.ports[1]}"):
                    pass


async def test_connections_go_to_the_workers_in_turn(router: RunningRouter) -> None:
    met: Counter[str] = Counter()
    for _ in range(20):
        async with connect(f"amqp://127.0.0.1:{router.port}") as connection:
            met[connection.remote.container_id] += 1
    assert met == {FIRST: 10, SECOND: 10}


async def wait_ended(pid: int) -> None:
    """Wait until a process that this one did not start has ended."""
    descriptor = os.pidfd_open(pid)
    try:
        await trio.lowlevel.wait_readable(descriptor)
    finally:
        os.close(descriptor)


class Load:
    """Senders and receivers of many connections, which connect again, and the ledger of their messages."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._sent = 0
        self.accepted: set[object] = set()
        self.received: Counter[object] = Counter()
        self._stirred = trio.Event()

    async def receive(self) -> None:
        while True:
            with suppress(ClientError, OSError):
                async with (
                    connect(f"amqp://127.0.0.1:{self._port}") as connection,
                    connection.open_receiver("load", credit=50) as receiver,
                ):
                    async for delivery in receiver:
                        self.received[delivery.message.body] += 1
                        await delivery.accept()

    async def send(self) -> None:
        while True:
            with suppress(ClientError, OSError):
                async with (
                    connect(f"amqp://127.0.0.1:{self._port}") as connection,
                    connection.open_sender("load") as sender,
                ):
                    while True:
                        self._sent += 1
                        number = self._sent
                        if await sender.send(Message(body=number)) == ACCEPTED:
                            self.accepted.add(number)
                            self._stirred.set()

    async def wait_accepted(self, more: int) -> None:
        """Wait until so many more messages are accepted."""
        wanted = len(self.accepted) + more
        while len(self.accepted) < wanted:
            self._stirred = trio.Event()
            await self._stirred.wait()


@pytest.mark.parametrize("place", [1, 2])
async def test_a_killed_worker_is_replaced_and_no_accepted_message_is_lost(tmp_path: Path, place: int) -> None:
    with two_workers(tmp_path) as router:
        load = Load(router.port)
        with trio.fail_after(DEADLINE_S):
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(load.receive)
                    nursery.start_soon(load.send)
                await load.wait_accepted(500)
                os.kill(pid_of(router, place), signal.SIGKILL)
                await load.wait_accepted(200)
                await wait_for(
                    router, rf"MAIN \(critical\) worker {place} \(process ID \d+\) ended by SIGKILL: it is st"
                )
                await wait_for(router, rf"\[W{place}\] Operational", 2)
                await wait_for(router, r"\[W1\] router A.2 is a neighbour", 2 if place == 2 else 1)
                await load.wait_accepted(500)
                nursery.cancel_scope.cancel()
        assert load.accepted <= load.received.keys()
        assert set(load.received.values()) == {1}
        async with both(router.port) as (first, second):
            assert {first.remote.container_id, second.remote.container_id} == {FIRST, SECOND}


async def connect_until_refused(port: int) -> None:
    while True:
        await (await trio.open_tcp_stream("127.0.0.1", port)).aclose()


async def test_hup_changes_all_workers_and_a_faulty_file_none(tmp_path: Path) -> None:
    with two_workers(tmp_path) as router:
        before = router.configuration.read_text(encoding="utf-8")
        more = LISTENER.replace("port: 0", "port: 0\n    name: more")
        router.configuration.write_text(before + more, encoding="utf-8")
        router.process.send_signal(signal.SIGHUP)
        await wait_for(router, r"\[W2\] Listening on \S+ \(more\)")
        async with both(router.ports[1]):
            pass
        router.configuration.write_text("router {", encoding="utf-8")
        router.process.send_signal(signal.SIGHUP)
        await wait_for(router, r"\[W1\] Reload refused, nothing was changed")
        async with both(router.ports[1]):
            pass
        assert not router.matching(r"\[W2\] Reload refused")
        router.configuration.write_text(before, encoding="utf-8")
        router.process.send_signal(signal.SIGHUP)
        with pytest.raises(OSError, match="all attempts to connect"), trio.fail_after(DEADLINE_S):
            await connect_until_refused(router.ports[1])


async def test_the_workers_end_with_their_parent(tmp_path: Path) -> None:
    with process(TWO + LISTENER, tmp_path) as router:
        await wait_for(router, SERVES)
        pids = [pid_of(router, place) for place in (1, 2)]
        router.process.send_signal(signal.SIGKILL)
        with trio.fail_after(DEADLINE_S):
            for pid in pids:
                await wait_ended(pid)


async def test_term_ends_the_workers_first(tmp_path: Path) -> None:
    with two_workers(tmp_path) as router:
        pids = [pid_of(router, place) for place in (1, 2)]
        assert await trio.to_thread.run_sync(router.stop) == 0
        for pid in pids:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)


async def test_a_worker_runs_no_code_of_the_folder_that_the_router_is_started_in(tmp_path: Path) -> None:
    (tmp_path / "trouter").mkdir()
    (tmp_path / "trouter" / "__init__.py").write_text("raise SystemExit('code of a stranger')")
    configuration = tmp_path / "router.conf"
    configuration.write_text(TWO + LISTENER)
    command = [sys.executable, "-P", "-m", "trouter", "run", "-c", str(configuration)]
    with watched(command, configuration, cwd=tmp_path) as router:
        await wait_for(router, SERVES)
        assert await trio.to_thread.run_sync(router.stop) == 0


async def test_a_second_router_from_the_same_file_does_not_start(router: RunningRouter, tmp_path: Path) -> None:
    taken = LISTENER.replace("port: 0", f"port: {router.port}")
    with process(TWO + taken, tmp_path) as other:
        assert await trio.to_thread.run_sync(other.wait) == 1
    assert f"Router start-up failed: cannot listen on 127.0.0.1:{router.port}: Address already in use" in other.text()
    assert "worker 1 ended with status 1 before it served: see the lines above" in other.text()
    assert not other.matching(r"\[W2\]")
    async with both(router.port):
        pass


async def test_a_worker_that_ends_again_and_again_ends_the_router(tmp_path: Path) -> None:
    with process(TWO + LISTENER, tmp_path) as router:
        await wait_for(router, SERVES)
        for count in range(1, 6):
            await wait_for(router, r"\[W2\] Operational", count)
            os.kill(pid_of(router, 2), signal.SIGKILL)
        assert await trio.to_thread.run_sync(router.wait) == 1
        assert router.matching(r"MAIN \(critical\) worker 2 has ended 5 times within 60 s: ended by SIGKILL")


async def test_what_workers_cannot_have_keeps_the_router_from_starting(tmp_path: Path) -> None:
    name = "a" * 127
    with process(TWO.replace("id: A", f"id: {name}") + LISTENER, tmp_path) as router:
        assert await trio.to_thread.run_sync(router.wait) == 1
    assert "an id of 127 characters cannot be used with workers: the router will not start" in router.text()


async def test_the_interpreted_router_has_no_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "router.conf"
    path.write_text(TWO + LISTENER, encoding="utf-8")
    monkeypatch.setenv("TROUTER_PURE", "1")
    command = [sys.executable, "-m", "trouter", "run", "-c", str(path)]
    with trio.fail_after(DEADLINE_S):
        done = await trio.run_process(command, cwd=ROOT, capture_stderr=True, check=False)
    assert done.returncode == 1
    errors = done.stderr.decode()
    assert "an interpreted router has no workers: the router will not start" in errors
    assert "unset TROUTER_PURE, or write workers: 1" in errors


async def test_what_waits_at_another_worker_is_bounded_and_the_rest_waits_at_the_senders(tmp_path: Path) -> None:
    """Messages of one frame and one priority: those of a neighbour's window wait at the worker of the consumers."""
    window_bytes, frame_bytes = 64 << 20, 16 << 10
    message = Message(body=bytes(16_000))

    def held_bytes(node: Node) -> tuple[int, int]:
        """Return what worker 1 holds for the other one, and what both hold for clients."""
        rows = node.node("GET-MEMORY", by="connection")
        between = sum(row["messages"] for row in rows if row["vhost"] == "another worker")
        return between, sum(row["messages"] for row in rows) - between

    async def fill(sender: Sender) -> None:
        for _ in range(_CREDIT):
            await sender.submit(message)

    with two_workers(tmp_path) as router, node_of(router.port) as node:
        async with AsyncExitStack() as links, both(router.port) as (near, far), trio.open_nursery() as nursery:
            for number in range(window_bytes // (16_000 * _CREDIT) + 4):
                await links.enter_async_context(near.open_receiver(f"slow{number}", credit=0))
                nursery.start_soon(fill, await links.enter_async_context(far.open_sender(f"slow{number}")))
            between = beside = 0
            while beside < frame_bytes or between < window_bytes - 2 * frame_bytes:
                between, beside = await trio.to_thread.run_sync(held_bytes, node)
            assert between <= window_bytes + frame_bytes
            nursery.cancel_scope.cancel()


async def test_a_listener_whose_address_is_taken_opens_at_every_worker_once_it_is_free(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with two_workers(tmp_path, LISTENER.replace("port: 0", f"port: {port}")) as router:
            await wait_for(router, rf"Listener error: cannot listen on 127.0.0.1:{port}: Address already in use", 2)
            async with both(router.port):
                taken.close()
                await wait_for(router, rf"Listening on 127\.0\.0\.1:{port}", 2)
                async with both(port):
                    pass
