"""An edge router with two uplinks: one is active, the other takes over when the first is lost."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.management.node import node_of
from tests.networks import EDGE_LISTENER, OPEN, client_port, edge, edge_port, interior, router_port, wait_for_reach
from tests.routers import RunningRouter, process, running
from trouter.client import Message, Receiver, Sender, connect
from trouter.wire.performatives import Accepted, Modified, Released

pytestmark = pytest.mark.slow

#: Seconds that only a hang takes.
HANG_S = 60.0

Routers = dict[str, RunningRouter]


def url(router: RunningRouter) -> str:
    return f"amqp://127.0.0.1:{client_port(router)}"


def uplinks(router: RunningRouter) -> dict[str, dict[str, Any]]:
    """Return the connections of an edge router to interior ones, by the router at the other end."""
    with node_of(client_port(router)) as node:
        return {row["container"]: row for row in node.query("connection") if row["role"] == "edge"}


@pytest.fixture
def routers(tmp_path: Path) -> Iterator[Routers]:
    """Run A and B as neighbours, and E with connectors to both."""
    with ExitStack() as stack:
        started: Routers = {}
        for name, others in (("A", ()), ("B", ("A",))):
            dials = {other: router_port(started[other]) for other in others}
            started[name] = stack.enter_context(process(interior(name, dials, EDGE_LISTENER), tmp_path))
            started[name].wait_for_line("Operational")
        wait_for_reach(started)
        ports = [edge_port(started["A"]), edge_port(started["B"])]
        started["E"] = stack.enter_context(running(edge("E", ports), tmp_path))
        started["E"].wait_for_line(r"Edge connection \(id=\d+\) to interior established$")
        started["E"].wait_for_line("uplink .* is a standby")
        yield started


async def take(receiver: Receiver) -> None:
    delivery = await receiver.receive()
    assert delivery.message.body == "hello"
    await delivery.accept()


async def insist(sender: Sender) -> None:
    """Send until accepted: messages before the new uplink knows its receivers are released (routing.md 3.3)."""
    while (outcome := await (await sender.submit(Message("hello"))).outcome()) == Released():
        pass
    assert outcome == Accepted()


async def test_the_other_uplink_takes_over_with_every_address(routers: Routers) -> None:
    found = uplinks(routers["E"])
    assert sorted(row["active"] for row in found.values()) == [False, True]
    active = next(name for name, row in found.items() if row["active"])
    other = "B" if active == "A" else "A"
    with node_of(client_port(routers[other])) as node:  # nothing is attached on the inactive uplink
        ids = {row["identity"] for row in node.query("connection") if row["role"] == "edge"}
        assert not [row for row in node.query("router.link") if row["connectionId"] in ids]
    with trio.fail_after(HANG_S):
        async with (
            connect(url(routers["E"])) as at_edge,
            connect(url(routers[other])) as at_other,
            connect(url(routers[active])) as at_active,
            at_edge.open_receiver("to.edge") as receiver,
            at_edge.open_receiver(dynamic=True) as answers,
            at_edge.open_sender("from.edge") as sender,
            at_active.open_receiver("from.edge") as victim,
        ):
            under_way = await sender.submit(Message("under way"))
            await victim.receive()  # and it never settles
            routers[active].process.send_signal(signal.SIGKILL)
            assert isinstance(await under_way.outcome(), Modified | Released)
            routers["E"].wait_for_line(rf"Edge connection \(id={found[active]['identity']}\) to interior lost$")
            routers["E"].wait_for_line(rf"Edge connection \(id={found[other]['identity']}\) to interior established$")
            routers[other].wait_for_line(f"router {active} is no longer a neighbour")  # else messages are lost there
            async with (
                at_other.open_sender("to.edge") as down,
                at_other.open_sender(answers.address) as answering,
                at_other.open_receiver("from.edge") as up,
            ):
                for sends, came in ((down, receiver), (answering, answers), (sender, up)):
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(take, came)
                        await insist(sends)
    assert [row["active"] for row in uplinks(routers["E"]).values()] == [True]


def test_an_interior_router_that_lets_no_edge_in_is_no_uplink(tmp_path: Path) -> None:
    """A listener of another role refuses the links of an edge router; the router reports the refusal and goes on."""
    plain = f"router {{ mode: interior, id: A }}\nlistener {{ {OPEN} }}\nlistener {{ {OPEN}, maxSessions: 1 }}\n"
    with running(plain, tmp_path) as above:
        with running(edge("E", [above.ports[1]]), tmp_path) as below:
            below.wait_for_line("cannot use the uplink: an uplink needs 2 sessions")
            with node_of(client_port(below)) as node:
                assert node.query("router")[0]["mode"] == "edge"
        with running(edge("E", [above.ports[0]]), tmp_path) as below:
            below.wait_for_line("link downlink of the uplink was detached: qd:forbidden")


POLICY = """
policy {
    enableVhostPolicy: yes
    defaultVhost: $default
}
vhost {
    hostname: $default
    allowUnknownUser: yes
    groups: {
        $default: {
            remoteHosts: *
            sources: E1, _$qd.edge_addr_tracking, allowed
            targets: $management, _$qd.addr_lookup, _$qd.edge_heartbeat, allowed
            allowDynamicSource: yes
            allowAnonymousSender: yes
            allowUserIdProxy: yes
        }
    }
}
"""


async def test_a_policy_names_the_edge_routers_and_the_addresses_of_their_clients(tmp_path: Path) -> None:
    with running(interior("A", {}, EDGE_LISTENER + POLICY), tmp_path) as above, ExitStack() as stack:
        first, second = (
            stack.enter_context(running(edge(name, [edge_port(above)]), tmp_path)) for name in ("E1", "E2")
        )
        second.wait_for_line("link downlink of the uplink was detached: amqp:unauthorized-access")
        with trio.fail_after(HANG_S):
            async with (
                connect(url(first)) as one,
                connect(url(second)) as other,
                one.open_receiver("allowed") as receiver,
                other.open_sender("allowed") as sender,
                one.open_receiver("secret"),
            ):
                tracker = await sender.submit(Message("hello"))
                delivery = await receiver.receive()
                assert delivery.message.body == "hello"
                await delivery.accept()
                assert await tracker.outcome() == Accepted()
                first.wait_for_line("link secret of the uplink was detached: amqp:unauthorized-access")
        assert not first.matching("link downlink")
