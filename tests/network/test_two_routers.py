"""Two routers, a client on each: messages, outcomes and answers cross the hop between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.networks import OPEN, client_port, interior, network, router_port
from tests.routers import RunningRouter, StartRouter, any_worker
from trouter.client import Message, Properties, connect
from trouter.wire.performatives import Accepted, Rejected


@pytest.fixture(scope="module")
def routers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RunningRouter]]:
    folder: Path = tmp_path_factory.mktemp("two")
    more = "address { prefix: many, distribution: multicast }\naddress { prefix: near, distribution: closest }"
    with network(folder, {"A": (), "B": ("A",)}, {"A": more, "B": more}) as started:
        yield started


def url(router: RunningRouter) -> str:
    return f"amqp://127.0.0.1:{client_port(router)}"


@pytest.mark.parametrize("address", ["far.balanced", "many.far", "near.far"])
@pytest.mark.parametrize(("here", "there"), [("A", "B"), ("B", "A")])
async def test_a_message_goes_to_a_consumer_on_the_other_router(
    routers: dict[str, RunningRouter], address: str, here: str, there: str
) -> None:
    async with (
        connect(url(routers[here])) as sending,
        connect(url(routers[there])) as receiving,
        receiving.open_receiver(address) as receiver,
        sending.open_sender(address) as sender,
    ):
        tracker = await sender.submit(Message("hello"))
        delivery = await receiver.receive()
        assert delivery.message.body == "hello"
        assert not delivery.message.message_annotations
        await delivery.accept()
        assert await tracker.outcome() == Accepted()
        tracker = await sender.submit(Message("no"))
        await (await receiver.receive()).reject("x:no", "not this one")
        outcome = await tracker.outcome()
        assert isinstance(outcome, Rejected)
        if address.startswith("many"):
            assert outcome.error is None  # one outcome for all copies has no reason of any (routing.md 2.4)
        else:
            assert outcome.error is not None
            assert (outcome.error.condition, outcome.error.description) == ("x:no", "not this one")


async def test_an_answer_finds_its_way_back(routers: dict[str, RunningRouter]) -> None:
    async with (
        connect(url(routers["A"])) as asking,
        connect(url(routers["B"])) as answering,
        asking.open_receiver(dynamic=True) as answers,
        answering.open_sender() as sender,
    ):
        assert answers.address is not None
        assert re.match(rf"amqp:/_topo/0/{any_worker('A')}/temp\.", answers.address)
        tracker = await sender.submit(Message("yes", Properties(to=answers.address)))
        delivery = await answers.receive()
        assert delivery.message.body == "yes"
        await delivery.accept()
        assert await tracker.outcome() == Accepted()


async def test_messages_between_routers_are_logged_where_configured(start_router: StartRouter) -> None:
    logged = f"{OPEN}, role: inter-router, allowInsecureRole: yes, messageLoggingComponents: to"
    there = start_router(
        f"router {{ mode: interior, id: B }}\nlistener {{ {OPEN} }}\nlistener {{ {logged} }}\n"
        "log { module: MESSAGE, enable: trace+ }\n"
    )
    here = start_router(interior("A", {"B": router_port(there)}))
    here.wait_for_line("router B is a neighbour over")
    async with (
        connect(url(there)) as receiving,
        receiving.open_receiver("logged.x") as receiver,
        connect(url(here)) as sending,
        sending.open_sender("logged.x") as sender,
    ):
        await sender.submit(Message("hello", Properties(to="elsewhere")))
        await (await receiver.receive()).accept()
    there.wait_for_line(r'MESSAGE \(trace\) \[C\d+\]: Received Message\{to="elsewhere"\} on link')
    assert there.matching("Sent Message") == []  # to a client, whose listener logs no messages
