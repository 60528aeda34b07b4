"""Edge routers: two interior routers with one each, and clients of all kinds on each (inter-router.md 6)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, ExitStack
from itertools import product
from pathlib import Path

import pytest
import trio

from tests.networks import EDGE_LISTENER, client_port, edge, edge_port, network
from tests.routers import RunningRouter, any_worker, running
from trouter.client import LinkDetached, Message, Properties, Receiver, Sender, connect
from trouter.wire.performatives import Accepted, Modified, Rejected, Released
from trouter.wire.types import Symbol

pytestmark = pytest.mark.slow

#: Seconds that only a hang takes.
HANG_S = 60.0
#: The treatment of addresses on every router.
RULES = """
address { prefix: many, distribution: multicast }
address { prefix: near, distribution: closest }
address { prefix: staged, waypoint: yes }
address { prefix: spare, enableFallback: yes }
"""
ADDRESSES = ("far.balanced", "many.far", "near.far")
#: Places of a sender and a receiver: on the same edge router, above it, beyond.
PLACES = ("A", "B", "E1", "E2")


@pytest.fixture(scope="module")
def routers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RunningRouter]]:
    folder: Path = tmp_path_factory.mktemp("edges")
    more = RULES + EDGE_LISTENER
    with network(folder, {"A": (), "B": ("A",)}, {"A": more, "B": more}) as started, ExitStack() as stack:
        for name, above in (("E1", "A"), ("E2", "B")):
            text = edge(name, [edge_port(started[above])], RULES)
            started[name] = stack.enter_context(running(text, folder))
        for name in ("E1", "E2"):
            started[name].wait_for_line("Edge connection .* to interior established")
        yield started


def url(router: RunningRouter) -> str:
    return f"amqp://127.0.0.1:{client_port(router)}"


async def everywhere(
    check: Callable[[str, str], Awaitable[None]], places: Iterable[tuple[str, str]] = tuple(product(PLACES, PLACES))
) -> None:
    """Check all placements concurrently: an update to other routers takes a second or two."""
    with trio.fail_after(HANG_S):
        async with trio.open_nursery() as nursery:
            for here, there in places:
                nursery.start_soon(check, here, there)


@pytest.mark.parametrize("prefix", ADDRESSES)
async def test_a_message_reaches_its_consumer_on_every_router(routers: dict[str, RunningRouter], prefix: str) -> None:
    async def check(here: str, there: str) -> None:
        address = f"{prefix}.{here}.{there}"
        async with (
            connect(url(routers[here])) as sending,
            connect(url(routers[there])) as receiving,
            receiving.open_receiver(address) as receiver,
            sending.open_sender(address) as sender,
        ):
            tracker = await sender.submit(Message("hello", message_annotations={Symbol("mine"): 1}))
            delivery = await receiver.receive()
            assert (delivery.message.body, delivery.message.message_annotations) == ("hello", {"mine": 1}), address
            await delivery.accept()
            assert await tracker.outcome() == Accepted(), address
            tracker = await sender.submit(Message("no"))
            await (await receiver.receive()).reject("x:no", "not this one")
            assert isinstance(await tracker.outcome(), Rejected), address

    await everywhere(check)


async def test_a_large_message_crosses_everything_whole(routers: dict[str, RunningRouter]) -> None:
    body = bytes(range(256)) * 4096  # a million bytes: streamed

    async def check(here: str, there: str) -> None:
        address = f"large.{here}.{there}"
        async with (
            connect(url(routers[here])) as sending,
            connect(url(routers[there])) as receiving,
            receiving.open_receiver(address) as receiver,
            sending.open_sender(address) as sender,
        ):
            tracker = await sender.submit(Message(body))
            delivery = await receiver.receive()
            assert delivery.message.body == body, address
            await delivery.accept()
            assert await tracker.outcome() == Accepted(), address

    await everywhere(check)


async def test_a_receiver_that_leaves_in_the_middle_of_a_message_holds_no_other_up(
    routers: dict[str, RunningRouter],
) -> None:
    """The sender gets the outcome released, and goes on."""

    async def check(here: str, there: str) -> None:
        address = f"left.{here}.{there}"
        begun, gone = trio.Event(), trio.Event()

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(10):  # enough to be forwarded unfinished
                yield b"x" * 65536
            begun.set()
            await gone.wait()
            yield b"y" * 65536

        async def send(sender: Sender) -> None:
            outcomes.append(await sender.send_stream(pieces()))

        async def take(receiver: Receiver) -> None:
            await (await receiver.receive()).accept()

        outcomes: list[object] = []
        async with connect(url(routers[here])) as sending, sending.open_sender(address) as sender:
            async with trio.open_nursery() as nursery:
                async with (
                    connect(url(routers[there])) as receiving,
                    receiving.open_receiver(address, stream=True) as receiver,
                ):
                    nursery.start_soon(send, sender)
                    assert not (await receiver.receive()).complete
                    await begun.wait()
                gone.set()
            assert isinstance(outcomes[0], Released | Modified), (here, there, outcomes)
            async with (
                connect(url(routers[there])) as again,
                again.open_receiver(address) as receiver,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(take, receiver)
                while not isinstance(await sender.send(Message("after")), Accepted):
                    pass  # sent before every router knew of the new receiver

    await everywhere(check)


async def test_an_answer_finds_its_requester(routers: dict[str, RunningRouter]) -> None:
    """The answer goes by an anonymous sender, and by one for the reply address."""

    async def check(here: str, there: str) -> None:
        async with (
            connect(url(routers[here])) as asking,
            connect(url(routers[there])) as answering,
            asking.open_receiver(dynamic=True) as answers,
        ):
            kind = "_edge" if here.startswith("E") else "_topo/0"
            assert re.match(rf"amqp:/{kind}/{any_worker(here)}/temp\.", answers.address)
            for target in (None, answers.address):
                async with answering.open_sender(target) as sender:
                    tracker = await sender.submit(Message("yes", Properties(to=answers.address)))
                    delivery = await answers.receive()
                    assert delivery.message.body == "yes"
                    await delivery.accept()
                    assert await tracker.outcome() == Accepted(), (here, there, target)

    await everywhere(check)


async def all_hear(sender: Sender, receivers: list[Receiver]) -> None:
    """Send until every receiver has got a message, then check that none has got one twice."""
    heard: set[Receiver] = set()

    async def hear(receiver: Receiver) -> None:
        async for delivery in receiver:
            assert delivery.message.body in ("probe", "last")
            heard.add(receiver)
            await delivery.accept()
            if delivery.message.body == "last":
                return

    async with trio.open_nursery() as nursery:
        for receiver in receivers:
            nursery.start_soon(hear, receiver)
        while len(heard) < len(receivers):
            await sender.send(Message("probe"))
        await sender.send(Message("last"))


@pytest.mark.parametrize("here", PLACES)
async def test_every_receiver_gets_one_copy_of_a_multicast(routers: dict[str, RunningRouter], here: str) -> None:
    """The sender names the address once for its link, or in each message."""
    address = f"many.copies.{here}"
    with trio.fail_after(HANG_S):
        async with AsyncExitStack() as stack:
            receivers = []
            for there in (*PLACES, "E1"):
                connection = await stack.enter_async_context(connect(url(routers[there])))
                receivers.append(await stack.enter_async_context(connection.open_receiver(address)))
            sending = await stack.enter_async_context(connect(url(routers[here])))
            named = await stack.enter_async_context(sending.open_sender(address))
            unnamed = await stack.enter_async_context(sending.open_sender())
            await all_hear(named, receivers)
            for sender in (named, unnamed):
                for body in ("to all", "and again"):  # the second shows that the first did not arrive twice
                    tracker = await sender.submit(Message(body, Properties(to=address)))
                    for receiver in receivers:
                        delivery = await receiver.receive()
                        assert delivery.message.body == body
                        await delivery.accept()
                    assert await tracker.outcome() == Accepted()


async def test_messages_without_a_receiver_come_back(routers: dict[str, RunningRouter]) -> None:
    with trio.fail_after(HANG_S):
        async with connect(url(routers["E1"])) as client, client.open_sender() as sender:
            for to in ("nobody.here", "_edge/E9/x", "_edge/E1/temp.gone", "_topo/0/Z/x", "_local/x", "many.nobody"):
                assert isinstance(await sender.send(Message("?", Properties(to=to))), Released), to


async def test_no_client_receives_from_the_address_of_a_router(routers: dict[str, RunningRouter]) -> None:
    """The address of an edge router, or of another router, is no source for clients."""
    with trio.fail_after(HANG_S):
        for here, address in (("A", "_edge/E1/x"), ("E1", "_edge/E2/x"), ("E1", "_topo/0/A/x"), ("B", "_edge/E7/x")):
            async with connect(url(routers[here])) as client:
                with pytest.raises(LinkDetached) as refused:
                    async with client.open_receiver(address):
                        pass
                assert refused.value.condition == "qd:no-route-to-dest"


async def test_phases_and_fallbacks_are_kept_across_edge_routers(routers: dict[str, RunningRouter]) -> None:
    async def staged(here: str, there: str) -> None:
        """Check that messages go to the waypoint first, and from there to the consumer."""
        address = f"staged.{here}.{there}"
        async with (
            connect(url(routers[here])) as client,
            connect(url(routers[there])) as waypoint,
            client.open_receiver(address) as receiver,
            waypoint.open_receiver(address, capabilities=("qd.waypoint",)) as before,
            waypoint.open_sender(address, capabilities=("qd.waypoint",)) as behind,
            client.open_sender(address) as sender,
        ):
            tracker = await sender.submit(Message("first"))
            delivery = await before.receive()
            assert delivery.message.body == "first"
            await delivery.accept()
            assert await tracker.outcome() == Accepted()
            tracker = await behind.submit(Message("second"))
            delivery = await receiver.receive()
            assert delivery.message.body == "second"
            await delivery.accept()
            assert await tracker.outcome() == Accepted()

    async def spared(here: str, there: str) -> None:
        """Check that a fallback consumer gets the messages that no other consumer takes."""
        address = f"spare.{here}.{there}"
        async with (
            connect(url(routers[here])) as sending,
            connect(url(routers[there])) as receiving,
            receiving.open_receiver(address, capabilities=("qd.fallback",)) as receiver,
            sending.open_sender(address) as sender,
        ):
            tracker = await sender.submit(Message("anybody?"))
            delivery = await receiver.receive()
            assert delivery.message.body == "anybody?"
            await delivery.accept()
            assert await tracker.outcome() == Accepted(), address

    await everywhere(staged)
    await everywhere(spared)


@pytest.mark.parametrize(("here", "edge_router"), [("A", "E1"), ("B", "E1"), ("E1", "E2"), ("E2", "E2")])
async def test_an_edge_router_is_managed_from_elsewhere(
    routers: dict[str, RunningRouter], here: str, edge_router: str
) -> None:
    with trio.fail_after(HANG_S):
        async with (
            connect(url(routers[here])) as client,
            client.open_receiver(dynamic=True) as answers,
            client.open_sender() as sender,
        ):
            asked = Message(
                {"attributeNames": ["id", "mode"]},
                Properties(to=f"_edge/{edge_router}/$management", reply_to=answers.address, correlation_id=1),
                application_properties={"operation": "QUERY", "entityType": "org.apache.qpid.dispatch.router"},
            )
            await sender.submit(asked)
            delivery = await answers.receive()
            assert delivery.message.body["results"] == [[edge_router, "edge"]]
