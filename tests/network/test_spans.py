"""Four routers: a triangle, and one more at one of its corners."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise

import pytest
import trio

from tests.interop.agents import agent, message
from tests.networks import client_port, network, until_known, wait_for_links
from tests.routers import RunningRouter
from trouter.client import Connection, Delivery, DeliveryAborted, Message, Properties, Receiver, connect
from trouter.wire.performatives import Accepted, Error, Modified, Rejected, Released

pytestmark = pytest.mark.slow

Routers = dict[str, RunningRouter]
#: D has two links, to A and to B, which are linked themselves.
SHAPE = {"A": (), "B": ("A",), "C": ("A", "B"), "D": ("C",)}
RULES = """
address { prefix: many, distribution: multicast }
address { prefix: near, distribution: closest }
address { prefix: fall, enableFallback: yes }
address { prefix: stages, ingressPhase: 0, egressPhase: 2 }
"""


@pytest.fixture(scope="module")
def routers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Routers]:
    more = dict.fromkeys(SHAPE, RULES)
    with network(tmp_path_factory.mktemp("spans"), SHAPE, more, router="raIntervalFluxSeconds: 1") as started:
        wait_for_links(started, SHAPE)
        yield started


def url(routers: Routers, name: str) -> str:
    return f"amqp://127.0.0.1:{client_port(routers[name])}"


@asynccontextmanager
async def receiver(routers: Routers, name: str, address: str, **options: object) -> AsyncIterator[Receiver]:
    async with connect(url(routers, name)) as connection, connection.open_receiver(address, **options) as found:  # type: ignore[arg-type]
        yield found


@pytest.mark.parametrize("address", ["any.x", "near.x", "many.x", "x", "far." + "y" * 2015])
@pytest.mark.parametrize(("here", "there"), [("A", "D"), ("D", "B")])
async def test_every_outcome_comes_back_from_any_distance(
    routers: Routers, address: str, here: str, there: str
) -> None:
    outcomes = (
        Accepted(),
        Rejected(Error("x:no", "not this one", {"why": "so"})),
        Released(),
        Modified(True, True, {"note": 1}),
    )
    async with (
        receiver(routers, there, address) as arriving,
        connect(url(routers, here)) as sending,
        sending.open_sender(address) as sender,
    ):
        for outcome in outcomes:
            tracker = await sender.submit(Message("hello", message_annotations={"mine": 1}))
            delivery = await arriving.receive()
            assert delivery.message.body == "hello"
            assert delivery.message.message_annotations == {"mine": 1}
            await delivery.settle(outcome)
            heard = await tracker.outcome()
            if address.startswith("many"):
                assert type(heard) is type(outcome)  # one outcome for all copies has no details of any (2.4)
            else:
                assert heard == outcome


async def test_a_multicast_reaches_every_receiver_once_from_everywhere(routers: Routers) -> None:
    async with AsyncExitStack() as stack:
        receivers = [await stack.enter_async_context(receiver(routers, name, "many.all")) for name in SHAPE]
        for name in SHAPE:
            await until_known(routers[name], "M0many.all", len(SHAPE) - 1)
        for name in SHAPE:
            sending = await stack.enter_async_context(connect(url(routers, name)))
            sender = await stack.enter_async_context(sending.open_sender("many.all"))
            trackers = [await sender.submit(Message(f"{name}{number}")) for number in range(3)]
            for each in receivers:
                # a duplicate would arrive in the place of the next message
                assert [(await _accepted(each)).message.body for _ in range(3)] == [f"{name}{n}" for n in range(3)]
            assert [await tracker.outcome() for tracker in trackers] == [Accepted()] * 3


async def _accepted(receiver: Receiver) -> Delivery:
    delivery = await receiver.receive()
    await delivery.accept()
    return delivery


async def test_closest_goes_to_the_nearest_router_until_its_receiver_leaves(routers: Routers) -> None:
    async with (
        connect(url(routers, "A")) as sending,
        receiver(routers, "D", "near.turn") as far,
        receiver(routers, "C", "near.turn") as near,
        sending.open_sender("near.turn") as sender,
    ):
        await until_known(routers["A"], "M0near.turn", 2)
        for number in range(5):
            tracker = await sender.submit(Message(number))
            assert (await _accepted(near)).message.body == number
            assert await tracker.outcome() == Accepted()
        await near.aclose()
        await until_known(routers["A"], "M0near.turn", 1)
        for number in range(5):
            tracker = await sender.submit(Message(number))
            assert (await _accepted(far)).message.body == number
            assert await tracker.outcome() == Accepted()


async def test_large_streams_and_small_messages_pass_each_other_on_the_way(routers: Routers) -> None:
    """Four streams at once, and the receiver of one reads nothing: the others arrive, and so do small messages."""
    body = bytes(range(256)) * 4096 * 3

    async def send(connection: Connection, address: str) -> None:
        async with connection.open_sender(address) as sender:
            assert await sender.send(Message(body)) == Accepted()

    async with AsyncExitStack() as stack:
        stuck = await stack.enter_async_context(receiver(routers, "D", "large.stuck", credit=0))
        takers = [await stack.enter_async_context(receiver(routers, "D", f"large.{number}")) for number in range(3)]
        small = await stack.enter_async_context(receiver(routers, "D", "small.x"))
        connections = [await stack.enter_async_context(connect(url(routers, "A"))) for _ in range(5)]
        sender = await stack.enter_async_context(connections.pop().open_sender("small.x"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send, connections.pop(), "large.stuck")
            for number, connection in enumerate(connections):
                nursery.start_soon(send, connection, f"large.{number}")
            for number in range(20):
                tracker = await sender.submit(Message(number))
                assert (await _accepted(small)).message.body == number
                assert await tracker.outcome() == Accepted()
            for each in takers:
                assert (await _accepted(each)).message.body == body
            stuck.add_credit(1)
            assert (await _accepted(stuck)).message.body == body


async def test_a_stream_that_breaks_off_is_aborted_at_the_receiver_and_others_go_on(routers: Routers) -> None:
    async with receiver(routers, "D", "broken.x", stream=True) as arriving, trio.open_nursery() as nursery:
        begun = trio.Event()

        async def pieces() -> AsyncIterator[bytes]:
            yield b"x" * 400_000
            await begun.wait()
            raise RuntimeError("the sender thinks better of it")

        async def send() -> None:
            async with connect(url(routers, "A")) as sending, sending.open_sender("broken.x") as sender:
                with pytest.raises(RuntimeError):
                    await sender.send_stream(pieces())
                assert await sender.send(Message("after")) == Accepted()

        nursery.start_soon(send)
        delivery = await arriving.receive()
        begun.set()
        with pytest.raises(DeliveryAborted):
            async for _ in delivery.pieces():
                pass
        delivery = await arriving.receive()
        whole = b"".join([bytes(piece) async for piece in delivery.pieces()])
        assert whole.endswith(b"after")
        await delivery.accept()


async def test_presettled_messages_cross_in_their_order(routers: Routers) -> None:
    async with (
        receiver(routers, "D", "settled.x", credit=1000) as arriving,
        connect(url(routers, "A")) as sending,
        sending.open_sender("settled.x") as sender,
    ):
        for number in range(200):
            await sender.send(Message(number), settled=True)
        for number in range(200):
            delivery = await arriving.receive()
            assert (delivery.message.body, delivery.settled) == (number, True)


async def test_stages_of_an_address_on_different_routers(routers: Routers) -> None:
    async with AsyncExitStack() as stack:
        last = await stack.enter_async_context(receiver(routers, "B", "stages.x"))
        for stage, (takes, gives) in enumerate(pairwise("DAC"), 1):
            taking = await stack.enter_async_context(
                receiver(routers, takes, "stages.x", capabilities=(f"qd.waypoint.{stage}",))
            )
            connection = await stack.enter_async_context(connect(url(routers, gives)))
            giving = await stack.enter_async_context(
                connection.open_sender("stages.x", capabilities=(f"qd.waypoint.{stage}",))
            )
            if stage == 1:
                first, pairs = giving, [(taking, giving)]
            else:
                pairs.append((taking, giving))
        del first
        connection = await stack.enter_async_context(connect(url(routers, "A")))
        sender = await stack.enter_async_context(connection.open_sender("stages.x"))
        for number in range(3):
            tracker = await sender.submit(Message(number))
            for taking, giving in pairs:
                assert (await _accepted(taking)).message.body == number
                onward = await giving.submit(Message(number))
            assert await tracker.outcome() == Accepted()
            assert (await _accepted(last)).message.body == number
            assert await onward.outcome() == Accepted()


async def test_no_receiver_listens_any_more(routers: Routers) -> None:
    """Messages sent meanwhile are released; when a receiver attaches again, on another router, the flow goes on."""
    async with connect(url(routers, "A")) as sending, sending.open_sender("comes.and.goes") as sender:
        for there in "DB":
            async with receiver(routers, there, "comes.and.goes") as arriving:
                await until_known(routers["A"], "M0comes.and.goes", 1)
                tracker = await sender.submit(Message(there))
                assert (await _accepted(arriving)).message.body == there
                assert await tracker.outcome() == Accepted()
            await until_known(routers["A"], "M0comes.and.goes", 0)
            assert await sender.send(Message("nobody")) == Released()


@pytest.mark.interop
@pytest.mark.parametrize(("client", "server"), [("proton", "rhea"), ("rhea", "proton")])
def test_stock_clients_on_different_routers(routers: Routers, client: str, server: str) -> None:
    asks, answers = client_port(routers["A"]), client_port(routers["D"])
    with agent(server, "respond", answers, address=f"stock.{client}", count=5) as responding:
        responding.wait_for("ready")
        with agent(client, "request", asks, address=f"stock.{client}", count=5) as requesting:
            requesting.wait_for("ready")
            assert requesting.result()["replies"] == [[f"id-{n}", f"PING {n}"] for n in range(5)]
        assert responding.result()["answered"] == 5
    size = 300_000
    with agent(server, "receive", answers, address=f"large.{client}", count=4) as receiving:
        receiving.wait_for("ready")
        with agent(client, "send", asks, address=f"large.{client}", count=4, size=size) as sending:
            sending.wait_for("ready")
            assert sending.result()["outcomes"] == [["accepted", None, None]] * 4
        assert receiving.result()["messages"] == [message(number, size) for number in range(4)]


async def test_the_way_to_a_dynamic_address_leads_over_any_number_of_hops(routers: Routers) -> None:
    async with (
        connect(url(routers, "D")) as asking,
        asking.open_receiver(dynamic=True) as answers,
        connect(url(routers, "A")) as answering,
        answering.open_sender() as sender,
    ):
        tracker = await sender.submit(Message("yes", Properties(to=answers.address)))
        assert (await _accepted(answers)).message.body == "yes"
        assert await tracker.outcome() == Accepted()
        outcome = await sender.send(Message("no", Properties(to="_topo/0/nobody/x")))
        assert outcome == Released()
