"""link.stalled of a router and its client in the test's own event loop, by a clock that the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trouter.app.process import RouterProcess
from trouter.client import Message, connect
from trouter.config import load
from trouter.core.watch import BLOCKED_AFTER_S, ROUND_S, STUCK_AFTER_S
from trouter.hooks import Plugins
from trouter.records import LinkAttachedRecord, LinkStalled, Record
from trouter.records.stream import RecordQueue
from trouter.telemetry.clocks import now_us
from trouter.wire.performatives import Error

CONFIGURATION = "router { id: R }\nlistener {\n host: 127.0.0.1\n port: 0\n idleTimeoutSeconds: 0\n}\n"


class Scene:
    """A router, and its records."""

    def __init__(self, process: RouterProcess) -> None:
        self.url = f"amqp://127.0.0.1:{process.listeners[0].sockets[0].getsockname()[1]}"
        self._stream = RecordQueue(lambda: None)
        process.services.recorder.add(self._stream)

    def records(self) -> list[Record]:
        """Return the records since the last call."""
        return list(self._stream.take_records().records)

    def stalled(self) -> list[LinkStalled]:
        return [record for record in self.records() if isinstance(record, LinkStalled)]


@pytest.fixture
async def scene(nursery: trio.Nursery, mock_clock: MockClock) -> AsyncIterator[Scene]:
    process = RouterProcess(load(text=CONFIGURATION), Plugins.load())
    await nursery.start(process.run)
    yield Scene(process)
    process.in_force.stop(Error("amqp:connection:forced", "the test is over"))
    nursery.cancel_scope.cancel()


async def turn(clock: MockClock, seconds: float) -> None:
    """Pass this time, and run the tasks that are due then."""
    clock.jump(seconds)
    await wait_all_tasks_blocked()


async def test_a_stalled_link_is_reported_at_its_start_and_at_its_end(scene: Scene, mock_clock: MockClock) -> None:
    async with connect(scene.url, idle_timeout=0) as client, client.open_sender("dry") as sender:
        await turn(mock_clock, max(ROUND_S, BLOCKED_AFTER_S) + 1)
        records = scene.records()
        (attached,) = [record for record in records if isinstance(record, LinkAttachedRecord)]
        (begun,) = [record for record in records if isinstance(record, LinkStalled)]
        assert (begun.conn, begun.link, begun.addr) == (attached.conn, attached.link, "dry")
        assert (begun.state, begun.unsettled) == ("start", 0)
        assert now_us() - begun.since >= BLOCKED_AFTER_S * 1_000_000
        await turn(mock_clock, ROUND_S + 1)
        assert scene.stalled() == []
        async with client.open_receiver("dry") as receiver:
            await sender.send(Message(b"x"), settled=True)
            await receiver.receive()
            await turn(mock_clock, ROUND_S + 1)
            (over,) = scene.stalled()
            assert (over.conn, over.link, over.addr, over.state) == (begun.conn, begun.link, "dry", "end")


async def test_links_with_a_delivery_that_is_stuck_are_reported_once(scene: Scene, mock_clock: MockClock) -> None:
    async with (
        connect(scene.url, idle_timeout=0) as client,
        client.open_receiver("slow") as receiver,
        client.open_sender("slow") as sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(sender.send, Message(b"x"))
        delivery = await receiver.receive()
        await turn(mock_clock, max(ROUND_S, STUCK_AFTER_S) + 1)
        reports = scene.stalled()
        assert {(each.addr, each.state, each.unsettled) for each in reports} == {("slow", "start", 1)}
        assert len({each.link for each in reports}) == len(reports) == 2
        await turn(mock_clock, ROUND_S + 1)
        assert scene.stalled() == []
        await delivery.accept()
