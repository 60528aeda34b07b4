"""The numbers and the health that HTTP listeners get from the router."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import pytest
import trio

from tests.app.processes import running
from trouter.app.process import RouterProcess
from trouter.client import Message, connect
from trouter.config import PolicyEntity, load
from trouter.policy.compiled import Policy

CONFIGURATION = """
router { id: R }
listener { name: front, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS, maxConnections: 1 }
linkRoute { prefix: broker, direction: in }
vhost { hostname: known, groups: { $default: { users: *, remoteHosts: * } } }
"""


@pytest.fixture
async def process(nursery: trio.Nursery) -> AsyncIterator[RouterProcess]:
    async with running(CONFIGURATION, nursery) as process:
        yield process


def url(process: RouterProcess) -> str:
    return f"amqp://127.0.0.1:{process.listeners[0].sockets[0].getsockname()[1]}"


async def test_the_figures_show_the_current_connections_links_and_deliveries(process: RouterProcess) -> None:
    async with (
        connect(url(process), hostname="known") as connection,
        connection.open_receiver("a") as receiver,
        connection.open_sender("a") as sender,
    ):
        tracker = await sender.submit(Message(b"one"))
        await (await receiver.receive()).accept()
        await tracker.outcome()
        figures = process.site.figures()
    totals = figures.totals
    assert [totals[each] for each in ("connections", "links", "link_routes", "deliveries_ingress")] == [1, 2, 1, 1]
    assert figures.vhost_connections == {"known": 1}
    (front,) = figures.listeners
    assert (front.name, front.connections, front.accepted, front.refused) == ("front", 1, 1, 0)
    assert figures.deliveries["mobile", "accepted"] == 1
    assert sum(figures.settle_latency["mobile", "accepted"].counts) == 1
    assert {owner.name for owner in figures.memory} >= {"qdr_link_t", "qdr_address_t"}
    assert figures.uptime_s >= 0


async def test_a_health_check_goes_through_the_core_and_leaves_nothing(process: RouterProcess) -> None:
    before = set(process.router.table.entries)
    for _ in range(3):
        assert await process.site.healthy()
    assert set(process.router.table.entries) == before


async def test_a_router_that_drains_is_not_ready_and_lives(process: RouterProcess) -> None:
    assert process.site.ready()
    process.in_force.refuse_work()
    assert (process.site.ready(), process.site.live(), process.site.figures().ready) == (False, True, False)


async def test_a_client_on_a_websocket_is_an_ordinary_connection(process: RouterProcess) -> None:
    (entity,) = load(text="listener { name: web, host: 127.0.0.1, port: 0, http: yes }").listeners
    near, far = socket.socketpair()
    near.setblocking(False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(process.site.serve_amqp, far, ("192.0.2.7", 1234), entity, None)
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(near))
        await stream.send_all(b"AMQP\x03\x01\x00\x00")
        assert (await stream.receive_some(8))[:8] == b"AMQP\x03\x01\x00\x00"
        await stream.aclose()


async def test_a_websocket_counts_among_all_connections(process: RouterProcess) -> None:
    entity = PolicyEntity(max_connections=0)
    process.services.policy.replace_policy(Policy.compile(entity, ()))
    near, far = socket.socketpair()
    with near:
        await process.site.serve_amqp(far, ("192.0.2.7", 1234), process.in_force.configuration.listeners[0], None)
        assert near.recv(1) == b""
    counts = process.services.policy.shown_policy()
    assert (counts["connectionsDenied"], counts["connectionsCurrent"]) == (1, 0)
