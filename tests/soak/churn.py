"""Churn: connections, links, addresses, routes and policies that come and go while the traffic flows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import trio

from tests.chaos.relay import Relay
from tests.chaos.traffic import Way, run_blocking
from tests.chaos.worlds import World
from trouter.client import ClientError, Message
from trouter.tools.failures import StatusError
from trouter.tools.node import NodeClient, open_node
from trouter.tools.options import ConnectionOptions
from trouter.tools.words import PREFIX

from .network import change_policy
from .pace import Soak

_HEADER: Final = b"AMQP\x00\x01\x00\x00"
_SITES: Final = "ABE"


async def _connections(soak: Soak) -> None:
    """Connect, use an address that no client has used before, and disconnect."""
    async for number in soak.every(1.0):
        name = f"once.{number}"
        async with (
            soak.world.at(_SITES[number % 3]).connect() as connection,
            connection.open_receiver(name) as receiver,
            connection.open_sender(name) as sender,
        ):
            for part in range(3):
                await sender.submit(Message(part))
                await (await receiver.receive()).accept()
        soak.churned["connections"] += 1


async def _lost_connections(soak: Soak) -> None:
    """Lose a connection whose links have unsettled deliveries and an incomplete message."""
    async for number in soak.every(5.0):
        site = soak.world.sites[_SITES[number % 3]]
        relay = Relay(site.ports[0])
        name = f"lost.{number}"
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_lose, f"amqp://127.0.0.1:{relay.port}", name, relay)
        finally:
            await run_blocking(relay.close)
        soak.churned["connections lost by a reset"] += 1


async def _lose(url: str, name: str, relay: Relay) -> None:
    async def half() -> AsyncIterator[bytes]:
        yield bytes(40_000)
        await run_blocking(relay.reset)
        yield b""

    try:
        async with (
            Way(url).connect() as connection,
            connection.open_receiver(name) as receiver,
            connection.open_sender(name) as sender,
        ):
            for part in range(10):
                await sender.submit(Message(part))
            await receiver.receive()
            await sender.send_stream(half())
    except* (OSError, ClientError):
        pass


async def _strangers(soak: Soak) -> None:
    """Connect and send nothing, an incomplete header, or bytes that are no AMQP, and disconnect."""
    greetings = (b"", _HEADER[:5], _HEADER, b"GET /\r\n\r\n", b"\x16\x03\x01\x00\x05hello", bytes(64))
    async for number in soak.every(2.0):
        async with await trio.open_tcp_stream("127.0.0.1", soak.world.sites[_SITES[number % 3]].ports[0]) as stream:
            await stream.send_all(greetings[number % len(greetings)])
            with trio.move_on_after(0.2):
                await stream.receive_some(100)
        soak.churned["connections without AMQP"] += 1


async def _links(soak: Soak) -> None:
    """Attach and detach links of every kind on one connection, also in separate sessions."""
    async with soak.world.at("E").connect() as connection:
        async for number in soak.every(0.5):
            async with (
                connection.session() as session,
                session.open_receiver(dynamic=True) as inbox,
                session.open_sender(inbox.address) as sender,
            ):
                await sender.submit(Message(number))
                await (await inbox.receive()).release()
            async with connection.open_sender(f"nobody.{number}"), connection.open_receiver(f"many.{number}", credit=1):
                soak.churned["links"] += 4


async def _aborted(soak: Soak) -> None:
    """Begin a long message, and abort it."""
    async with (
        soak.world.at("A").connect() as connection,
        connection.open_receiver("taken.back", stream=True) as receiver,
        connection.open_sender("taken.back") as sender,
    ):
        async for _ in soak.every(3.0):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(sender.send_stream, _endless())
                await receiver.receive()
                nursery.cancel_scope.cancel()
            soak.churned["messages taken back"] += 1


async def _endless() -> AsyncIterator[bytes]:
    for _ in range(20):  # a router holds the beginning of a message back until it has enough of it
        yield bytes(20_000)
    await trio.sleep_forever()


@asynccontextmanager
async def node_at(world: World, name: str) -> AsyncIterator[NodeClient]:
    """Yield the management node of a router."""
    options = ConnectionOptions(host="127.0.0.1", port=world.sites[name].ports[0], timeout_s=60.0)
    async with open_node(options) as node:
        yield node


def _entities(soak: Soak, number: int) -> list[tuple[str, Mapping[str, Any]]]:
    broker = soak.world.sites["Q"].ports[0]
    where = {"host": "127.0.0.1", "port": str(broker), "role": "route-container", "saslMechanisms": "ANONYMOUS"}
    name = f"churn.{number}"
    return [
        ("connector", where),
        ("router.config.address", {"prefix": name, "distribution": ("closest", "multicast", "balanced")[number % 3]}),
        ("router.config.linkRoute", {"prefix": f"{name}.routed", "direction": "in", "connection": "broker"}),
        ("router.config.linkRoute", {"prefix": f"{name}.routed", "direction": "out", "connection": name}),
        ("router.config.autoLink", {"address": f"{name}.queue", "direction": "in", "connection": name}),
        ("router.config.autoLink", {"address": f"{name}.queue", "direction": "out", "connection": "broker"}),
        ("vhost", {"hostname": name, "maxConnections": 10}),
    ]


async def _entities_made(soak: Soak) -> None:
    """Create connectors, addresses, routes and vhosts over management, query the network, and delete them."""
    await delete_made(soak)
    async with node_at(soak.world, "A") as node:
        async for number in soak.every(4.0):
            for place, (kind, attributes) in enumerate(_entities(soak, number)):
                name = f"churn.{number}" if place == 0 else f"churn.{number}.{place}"
                soak.made.append((PREFIX + kind, name))
                await node.call("CREATE", type=PREFIX + kind, name=name, body=dict(attributes))
                soak.churned[f"{kind.rpartition('.')[2]} made and deleted"] += 1
            for kind in ("connection", "router.link", "router.address"):
                await node.query(PREFIX + kind)
            await _delete(soak, node)
            soak.churned["rounds of management"] += 1


async def delete_made(soak: Soak) -> None:
    """Delete the entities whose creator lost its connection before it could delete them."""
    async with node_at(soak.world, "A") as node:
        await _delete(soak, node)


async def _delete(soak: Soak, node: NodeClient) -> None:
    while soak.made:
        kind, name = soak.made[-1]
        with suppress(StatusError):  # a reload may have deleted entities that are not in the file
            await node.call("DELETE", type=kind, name=name)
        soak.made.pop()


async def _policies(soak: Soak) -> None:
    """Change the policy in each router's file in turn and reload it; two changes restore the first policy."""
    async for number in soak.every(10.0):
        site = soak.world.sites["ABEQ"[number // 2 % 4]]
        await run_blocking(change_policy, site, number)
        soak.churned["policies changed and read"] += 1


#: The kinds of churn, each with its client; ``churned`` counts the client's rounds by kind.
CHURN: Final[dict[str, Callable[[Soak], Awaitable[None]]]] = {
    "connections": _connections,
    "connections lost by a reset": _lost_connections,
    "connections without AMQP": _strangers,
    "links": _links,
    "messages taken back": _aborted,
    "rounds of management": _entities_made,
    "policies changed and read": _policies,
}
