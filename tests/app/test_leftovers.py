"""Ended connections and replaced configurations are freed at once."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import AsyncIterator
from weakref import ref

import pytest
import trio
import trio.testing

from tests.app.processes import running
from trouter.app.process import RouterProcess
from trouter.client import Message, connect
from trouter.config import type_named
from trouter.connections.peer import Peer
from trouter.core.egress import Egress
from trouter.core.ingress import Ingress
from trouter.engine.connection import Connection
from trouter.engine.ports import Delivery
from trouter.hooks import Plugins
from trouter.tools.node import open_node
from trouter.tools.options import ConnectionOptions

CONFIGURATION = """
router { id: LEFTOVERS }
listener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }
"""


@pytest.fixture
async def process(nursery: trio.Nursery) -> AsyncIterator[RouterProcess]:
    async with running(CONFIGURATION, nursery) as process:
        yield process


def of_the_router() -> list[object]:
    """Return the objects that a router has for its connections and a client does not."""
    return [
        each
        for each in gc.get_objects()
        if isinstance(each, Peer | Ingress | Egress)
        or (isinstance(each, Connection) and each.local_open.container_id == "LEFTOVERS")
        or (isinstance(each, Delivery) and isinstance(each.link.sink, Ingress | Egress))
    ]


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("broken", [False, True])
async def test_a_closed_connection_is_gone_at_once(process: RouterProcess, broken: bool) -> None:
    url = f"amqp://127.0.0.1:{process.listeners[0].sockets[0].getsockname()[1]}"
    before = len(of_the_router())
    with trio.CancelScope() as scope:
        async with (
            connect(url) as connection,
            connection.open_receiver("a") as receiver,
            connection.open_sender("a") as sender,
        ):
            for number in range(10):
                tracker = await sender.submit(Message(b"x"))
                delivery = await receiver.receive()
                if number % 2:
                    await delivery.accept()
                    await tracker.outcome()
            assert len(of_the_router()) > before
            if broken:
                scope.cancel()
                await trio.lowlevel.checkpoint()
    while process.services.connections:
        await trio.testing.wait_all_tasks_blocked()
    await trio.testing.wait_all_tasks_blocked()
    process.router.watch_links(trio.current_time())
    assert [type(each).__name__ for each in of_the_router()][before:] == []


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often the router checks a connection's user and heartbeats; the checks follow quickly here."""
    counts: Counter[str] = Counter()

    def counted(owner: type, name: str) -> None:
        method = getattr(owner, name)

        def counting(*arguments: object) -> object:
            counts[name] += 1
            return method(*arguments)

        monkeypatch.setattr(owner, name, counting)

    counted(Plugins, "refresh")
    counted(Peer, "_tick_engine")
    monkeypatch.setattr("trouter.connections.login_checks.CHECK_S", 0.01)
    return counts


@pytest.mark.usefixtures("no_collector")
async def test_a_connection_inspected_by_a_task_is_freed_at_once(looks: Counter[str], process: RouterProcess) -> None:
    url = f"amqp://127.0.0.1:{process.listeners[0].sockets[0].getsockname()[1]}"
    before = len(of_the_router())
    async with connect(url, idle_timeout=0.8):
        there = looks["refresh"]
        while looks["refresh"] < there + 2 or not looks["_tick_engine"]:
            await trio.testing.wait_all_tasks_blocked()
        assert len(of_the_router()) > before
    while process.services.connections:
        await trio.testing.wait_all_tasks_blocked()
    await trio.testing.wait_all_tasks_blocked()
    assert [type(each).__name__ for each in of_the_router()][before:] == []


@pytest.mark.usefixtures("no_collector")
async def test_an_inspected_configuration_is_freed_when_replaced(process: RouterProcess) -> None:
    control, dummy = process.control, type_named("dummy")
    assert dummy is not None
    port = process.listeners[0].sockets[0].getsockname()[1]
    async with open_node(ConnectionOptions(host="127.0.0.1", port=port)) as node:
        await control.create(dummy, "one", {})
        old = ref(control.configuration)
        assert any("one" in row for row in (await node.query()).rows)
        await control.create(dummy, "two", {})
        assert old() is None
