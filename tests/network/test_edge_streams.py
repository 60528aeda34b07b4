"""Long messages through edge routers: an unfinished one delays no other (docs/edge.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.management.node import node_of
from tests.networks import EDGE_LISTENER, client_port, edge, edge_port, network, wait_for_row
from tests.routers import RunningRouter, running
from trouter.client import BodyKind, Delivery, Message, Properties, Sender, connect
from trouter.wire.performatives import Accepted

pytestmark = pytest.mark.slow

#: Seconds that only a hang takes.
HANG_S = 60.0
#: By place: the interior router that knows the receivers elsewhere.
ABOVE = {"A": "A", "B": "B", "E1": "A", "E2": "B"}
PLACES = [("E1", "A"), ("A", "E1"), ("E1", "E2"), ("E2", "E1"), ("E1", "B"), ("B", "E1"), ("A", "B")]
PIECE = b"x" * 65_536


@pytest.fixture(scope="module")
def routers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RunningRouter]]:
    folder = tmp_path_factory.mktemp("streams")
    more = {"A": EDGE_LISTENER, "B": EDGE_LISTENER}
    with network(folder, {"A": (), "B": ("A",)}, more) as started, ExitStack() as stack:
        for name, above in (("E1", "A"), ("E2", "B")):
            started[name] = stack.enter_context(running(edge(name, [edge_port(started[above])]), folder))
        for name in ("E1", "E2"):
            started[name].wait_for_line("Edge connection .* to interior established")
        yield started


def url(router: RunningRouter) -> str:
    return f"amqp://127.0.0.1:{client_port(router)}"


async def until_taken(router: RunningRouter, address: str) -> None:
    """Wait until an interior router knows that an address has a receiver."""

    def right(row: dict[str, Any]) -> bool:
        return bool(row["key"] == f"M0{address}" and row["subscriberCount"] + row["remoteCount"])

    await trio.to_thread.run_sync(partial(wait_for_row, router, "router.address", right))


def links(router: RunningRouter) -> list[dict[str, Any]]:
    """Return the links of a router as management shows them."""
    with node_of(client_port(router)) as node:
        return node.query("router.link")


async def accept_six_pieces(delivery: Delivery) -> None:
    """Read a message to its end, and accept it."""
    got = bytearray()
    async for piece in delivery.stream():
        got += piece
    assert got == PIECE * 6
    await delivery.accept()


@pytest.mark.parametrize(("here", "there"), PLACES)
@pytest.mark.parametrize("anonymous", [False, True])
async def test_a_message_that_stalls_does_not_stop_others_to_the_same_address(
    routers: dict[str, RunningRouter], here: str, there: str, anonymous: bool
) -> None:
    address = f"same.{here}.{there}.{anonymous}"
    begun, goes_on = trio.Event(), trio.Event()
    outcomes: list[object] = []

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield PIECE
        begun.set()
        await goes_on.wait()
        yield PIECE

    async def upload(sender: Sender) -> None:
        head = Message(kind=BodyKind.ABSENT, properties=Properties(to=address if anonymous else None))
        outcomes.append(await sender.send_stream(pieces(), head=head))

    with trio.fail_after(HANG_S):
        async with (
            connect(url(routers[there])) as one,
            connect(url(routers[there])) as other,
            one.open_receiver(address, stream=True, credit=1) as first,
            connect(url(routers[here])) as sending,
            connect(url(routers[here])) as more,
            sending.open_sender(None if anonymous else address) as long,
            more.open_sender(address) as short,
            trio.open_nursery() as nursery,
        ):
            await until_taken(routers[ABOVE[here]], address)
            nursery.start_soon(upload, long)
            stalled = await first.receive()
            await begun.wait()
            async with other.open_receiver(address) as second:
                for number in range(20):
                    tracker = await short.submit(Message(number))
                    delivery = await second.receive()
                    assert delivery.message.body == number
                    await delivery.accept()
                    assert await tracker.outcome() == Accepted()
            goes_on.set()
            await accept_six_pieces(stalled)
    assert outcomes == [Accepted()]


async def test_the_links_are_kept_and_used_again(routers: dict[str, RunningRouter]) -> None:
    address = "again"
    counted: list[int] = []
    with trio.fail_after(HANG_S):
        async with (
            connect(url(routers["E1"])) as receiving,
            connect(url(routers["E2"])) as sending,
            receiving.open_receiver(address) as receiver,
            sending.open_sender(address) as sender,
        ):
            for _ in range(3):
                tracker = await sender.submit(Message(PIECE * 40))
                delivery = await receiver.receive()
                assert delivery.message.body == PIECE * 40
                await delivery.accept()
                assert await tracker.outcome() == Accepted()
                counted.append(len(await trio.to_thread.run_sync(links, routers["A"])))
    assert len(set(counted)) == 1


#: A policy that permits users of the edge router everything needed; the changes do not affect them.
POLICY = """
policy { enableVhostPolicy: yes }
vhost { hostname: $default, allowUnknownUser: yes, groups: { $default: { remoteHosts: *, sources: *, targets: *, \
allowDynamicSource: yes, allowAnonymousSender: yes, allowUserIdProxy: yes } } }
"""


@pytest.mark.parametrize(("here", "there"), [("E", "A"), ("A", "E")])
async def test_a_changed_policy_does_not_cut_a_message_off(tmp_path: Path, here: str, there: str) -> None:
    going_on = trio.Event()
    outcomes: list[object] = []

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield PIECE
        await going_on.wait()
        yield PIECE

    async def upload(sender: Sender) -> None:
        outcomes.append(await sender.send_stream(pieces(), head=Message(kind=BodyKind.ABSENT)))

    def change_policy(router: RunningRouter) -> None:
        with node_of(client_port(router)) as node:
            assert node.ask("UPDATE", {"maxConnections": 1000}, type="vhost", identity="vhost/$default").status == 200

    with network(tmp_path, {"A": (), "B": ("A",)}, {"A": EDGE_LISTENER + POLICY}) as pair, ExitStack() as stack:
        pair["E"] = stack.enter_context(running(edge("E", [edge_port(pair["A"])]), tmp_path))
        pair["E"].wait_for_line("Edge connection .* to interior established")
        with trio.fail_after(HANG_S):
            async with (
                connect(url(pair[there])) as receiving,
                receiving.open_receiver("long", stream=True, credit=1) as receiver,
                connect(url(pair[here])) as sending,
                sending.open_sender("long") as sender,
                trio.open_nursery() as nursery,
            ):
                await until_taken(pair["A"], "long")
                nursery.start_soon(upload, sender)
                delivery = await receiver.receive()
                await trio.to_thread.run_sync(change_policy, pair["A"])
                going_on.set()
                await accept_six_pieces(delivery)
    assert outcomes == [Accepted()]
