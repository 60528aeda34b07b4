"""Exchanges in a network: on any router, interior or edge, with next hops on others, bound while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest
import trio
import trio.lowlevel

from tests.management.node import PREFIX, node_of
from tests.networks import EDGE_LISTENER, client_port, edge, edge_port, network, until_known
from tests.routers import RunningRouter, running
from trouter.client import Message, Properties, Receiver, Sender, connect
from trouter.wire.performatives import Accepted, Released

pytestmark = pytest.mark.slow

#: Seconds that only a hang takes.
HANG_S = 60.0
PLACES = ("A", "B", "E1", "E2")
RULES = "address { prefix: many, distribution: multicast }\n"


def exchange(place: str) -> str:
    """Return the exchange of a router: each has its own, with next hops on any router."""
    bindings = (("a.#", f"hop.{place}"), ("b", f"many.{place}"))
    return f"exchange {{ name: ex, address: ex.{place}, alternateAddress: rest.{place} }}\n" + "".join(
        f"binding {{\n    exchangeName: ex\n    bindingKey: {key}\n    nextHopAddress: {hop}\n}}\n"
        for key, hop in bindings
    )


@pytest.fixture(scope="module")
def routers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RunningRouter]]:
    folder: Path = tmp_path_factory.mktemp("exchanges")
    more = {place: RULES + EDGE_LISTENER + "\n" + exchange(place) for place in "AB"}
    with network(folder, {"A": (), "B": ("A",)}, more) as started, ExitStack() as stack:
        for name, above in (("E1", "A"), ("E2", "B")):
            text = edge(name, [edge_port(started[above])], RULES + exchange(name))
            started[name] = stack.enter_context(running(text, folder))
        for name in ("E1", "E2"):
            started[name].wait_for_line("Edge connection .* to interior established")
        yield started


def url(router: RunningRouter) -> str:
    return f"amqp://127.0.0.1:{client_port(router)}"


def message(subject: str | None, body: object = None) -> Message:
    return Message(body or subject or "none", Properties(subject=subject))


async def accepted(sender: Sender, subject: str | None, body: object = None) -> None:
    """Send until accepted: a router learns of addresses elsewhere after a moment."""
    with trio.fail_after(HANG_S):
        while await (await sender.submit(message(subject, body))).outcome() != Accepted():
            await trio.lowlevel.checkpoint()


async def keep_sending(sender: Sender, subject: str, body: object) -> None:
    """Send until cancelled: copies are pre-settled, so those to an address without a receiver are lost."""
    while True:
        await accepted(sender, subject, body)


async def taken(receiver: Receiver) -> object:
    """Return the body of the next message, which arrived settled."""
    with trio.fail_after(HANG_S):
        delivery = await receiver.receive()
        assert delivery.presettled
        return delivery.message.body


@pytest.mark.parametrize("place", PLACES)
async def test_an_exchange_serves_senders_and_next_hops_everywhere(
    routers: dict[str, RunningRouter], place: str
) -> None:
    async with AsyncExitStack() as stack:
        connections = {name: await stack.enter_async_context(connect(url(routers[name]))) for name in PLACES}
        many = [await stack.enter_async_context(connections[name].open_receiver(f"many.{place}")) for name in PLACES]
        for name in "AB":
            key = f"M0many.{place}"
            await until_known(routers[name], key, 1)
        for name in PLACES:
            if name != place:  # other routers learn of an exchange without senders after a moment
                sender = await stack.enter_async_context(connections[name].open_sender(f"ex.{place}"))
                await accepted(sender, "b", "hello")
                assert [await taken(each) for each in many] == ["hello"] * len(many)
        sender = await stack.enter_async_context(connections[place].open_sender(f"ex.{place}"))
        await accepted(sender, "b", b"x" * 3_000_000)
        for each in many:
            assert await taken(each) == b"x" * 3_000_000
        for name in PLACES:
            async with connections[name].open_receiver(f"hop.{place}") as hop, trio.open_nursery() as nursery:
                nursery.start_soon(keep_sending, sender, "a.b", name)
                while (body := await taken(hop)) != name:  # earlier messages to the receiver
                    assert body in PLACES
                nursery.cancel_scope.cancel()


async def test_bindings_come_and_go_while_messages_cross_the_network(routers: dict[str, RunningRouter]) -> None:
    kind = PREFIX + "router.config."
    async with (
        connect(url(routers["A"])) as sending,
        connect(url(routers["B"])) as receiving,
        receiving.open_receiver("new.hop") as hop,
        AsyncExitStack() as stack,
    ):
        rest = await stack.enter_async_context(receiving.open_receiver("rest.live"))
        with node_of(client_port(routers["B"])) as node:
            node.create(kind + "exchange", {"address": "live", "alternateAddress": "rest.live"}, name="live")
            await until_known(routers["A"], "M0live", 1)
            async with sending.open_sender("live") as sender:
                await accepted(sender, "s", 1)
                assert await taken(rest) == 1
                node.create(kind + "binding", {"exchangeName": "live", "nextHopAddress": "new.hop"}, name="bound")
                await accepted(sender, "s", 2)
                assert await taken(hop) == 2
                node.get("DELETE", type=kind + "binding", name="bound")
                await accepted(sender, "s", 3)
                assert await taken(rest) == 3
                await stack.aclose()
                assert await (await sender.submit(message("s"))).outcome() == Released()
                node.get("DELETE", type=kind + "exchange", name="live")
            await until_known(routers["A"], "M0live", 0)
