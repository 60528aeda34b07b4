"""The policy's maxMessageSize limits what clients send, and nothing on the connections that the router opened."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
import trio

from tests.networks import EDGE_LISTENER, OPEN, client_port, edge, edge_port, interior, network
from tests.routers import WORKERS, RunningRouter, StartRouter, process, running
from trouter.client import Message, Receiver, connect
from trouter.wire.performatives import Accepted, Rejected

pytestmark = pytest.mark.slow

#: Seconds that only a hang takes.
HANG_S = 60.0
LIMIT = 1000
#: Bodies: a message of one frame, and one that comes in frames on a link of its own between routers.
LARGE = ("x" * (5 * LIMIT), "y" * (300 * LIMIT))
HELD = f"policy {{ maxMessageSize: {LIMIT}, enableVhostPolicy: yes }}\n"
GROUP = "users: *, remoteHosts: *, sources: *, targets: *"
EVERYBODY = f"vhost {{\n hostname: $default\n allowUnknownUser: yes\n groups: {{\n  $default: {{ {GROUP} }}\n }}\n}}\n"
#: Policies for small messages: without vhosts, and with one that admits every client.
POLICIES = {"no vhosts": f"policy {{ maxMessageSize: {LIMIT} }}\n", "a vhost": HELD + EVERYBODY}


def url(router: RunningRouter) -> str:
    return f"amqp://127.0.0.1:{client_port(router)}"


async def check_arrival(sending: RunningRouter, receiving: RunningRouter, address: str) -> None:
    """Check that large messages go from a client of one router to a client of the other, and are accepted there."""

    async def take(receiver: Receiver) -> None:
        async for delivery in receiver:
            assert delivery.message.body in LARGE
            await delivery.accept()

    with trio.fail_after(HANG_S):
        async with (
            connect(url(sending)) as here,
            connect(url(receiving)) as there,
            there.open_receiver(address) as receiver,
            here.open_sender(address) as sender,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(take, receiver)
            for body in LARGE:
                assert await sender.send(Message(body)) == Accepted()
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
async def test_an_edge_router_takes_a_large_message_from_above_and_keeps_its_uplink(
    tmp_path: Path, policy: str
) -> None:
    with ExitStack() as stack:
        above = stack.enter_context(process(interior("A", {}, EDGE_LISTENER), tmp_path))
        above.wait_for_line("Operational")
        below = stack.enter_context(running(edge("E", [edge_port(above)], policy), tmp_path))
        below.wait_for_line(r"Edge connection \(id=\d+\) to interior established$", WORKERS)
        await check_arrival(above, below, "news")
        assert not below.matching("Edge connection .* lost")
        assert len(below.matching("Connection Opened: dir=out")) == WORKERS  # each has an uplink


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize(("limited", "other"), [("A", "B"), ("B", "A")], ids=["dials", "is dialled"])
async def test_a_router_takes_a_large_message_from_another(
    tmp_path: Path, limited: str, other: str, policy: str
) -> None:
    with network(tmp_path, {"B": (), "A": ("B",)}, {limited: policy}) as routers:
        await check_arrival(routers[other], routers[limited], "news")


def dialling(broker: RunningRouter, more: str = "") -> str:
    """Return the configuration of a router that takes the messages of a broker's queue for its own clients."""
    return (
        f"router {{ id: R }}\nlistener {{ {OPEN} }}\naddress {{ prefix: queue, waypoint: yes }}\n"
        f"connector {{\n name: b\n host: 127.0.0.1\n port: {client_port(broker)}\n role: route-container\n"
        f" saslMechanisms: ANONYMOUS\n{more}}}\nautoLink {{ address: queue, direction: in, connection: b }}\n"
    )


@pytest.fixture
def broker(start_router: StartRouter) -> RunningRouter:
    return start_router(f"router {{ id: BROKER }}\nlistener {{ {OPEN} }}\n")


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
async def test_a_large_message_from_a_broker_is_taken_and_the_connection_stays(
    start_router: StartRouter, broker: RunningRouter, policy: str
) -> None:
    router = start_router(dialling(broker) + policy)
    router.wait_for_line("Auto Link Activated")
    await check_arrival(broker, router, "queue")
    assert len(router.matching("Connection Opened: dir=out .*container_id=BROKER")) == 1


async def test_a_connector_with_a_policy_vhost_has_its_limit(start_router: StartRouter, broker: RunningRouter) -> None:
    vhost = f"vhost {{\n hostname: brokers\n groups: {{\n  $connector: {{ {GROUP} }}\n }}\n}}\n"
    router = start_router(dialling(broker, " policyVhost: brokers\n") + HELD + EVERYBODY + vhost)
    router.wait_for_line("Auto Link Activated")
    with trio.fail_after(HANG_S):
        async with (
            connect(url(router)) as there,
            there.open_receiver("queue"),
            connect(url(broker)) as here,
            here.open_sender("queue") as sender,
        ):
            assert isinstance(await sender.send(Message(LARGE[0])), Rejected)
    router.wait_for_line(r"DENY AMQP Transfer .* rule='brokers:\$connector:maxMessageSize'")


@pytest.mark.parametrize(("policy", "limit"), [(POLICIES["no vhosts"], 0), (POLICIES["a vhost"], LIMIT)], ids=POLICIES)
async def test_clients_get_the_limit_only_from_a_vhost(start_router: StartRouter, policy: str, limit: int) -> None:
    router = start_router(f"router {{ id: R }}\nlistener {{ {OPEN} }}\n{policy}")
    with trio.fail_after(HANG_S):
        async with connect(url(router)) as client, client.open_sender("news") as sender:
            assert sender.max_message_size == limit
