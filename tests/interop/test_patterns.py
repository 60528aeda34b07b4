"""Stock clients beyond one sender and one receiver: drain, requests, multicast, crashes, slowness."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import product

import pytest

from tests.e2e.peer import Peer
from tests.interop.agents import CLIENTS, agent, message
from tests.routers import RunningRouter
from trouter.wire.performatives import Accepted, Transfer

pytestmark = pytest.mark.interop

PAIRS = list(product(CLIENTS, CLIENTS))
BIG = 10_000_000
ACCEPTED = ["accepted", None, None]
each_client = pytest.mark.parametrize("client", CLIENTS)


@each_client
def test_a_drain_brings_the_waiting_messages_and_ends_the_credit(
    router: RunningRouter, address: str, client: str
) -> None:
    with agent(client, "drain", router.port, address=address, credit=10, count=7) as draining:
        draining.wait_for("ready")
        with Peer(router.port) as sender:
            link = sender.attach_sender(address)
            for number in range(4):
                sender.send_message(link, b"%d" % number)
            sender.be_heard()
            draining.go_on()
            assert draining.wait_for("drained")["received"] == 4
            for number in range(3):
                sender.send_message(link, b"%d" % number)
            draining.go_on()
            assert draining.result()["received"] == 7


@pytest.mark.parametrize(("client", "server"), PAIRS, ids=[f"{a}-asks-{b}" for a, b in PAIRS])
def test_requests_are_answered_at_a_dynamic_address(
    router: RunningRouter, address: str, client: str, server: str
) -> None:
    with agent(server, "respond", router.port, address=address, count=5) as responding:
        responding.wait_for("ready")
        with agent(client, "request", router.port, address=address, count=5) as requesting:
            requesting.wait_for("ready")
            assert requesting.result()["replies"] == [[f"id-{n}", f"PING {n}"] for n in range(5)]
        assert responding.result()["answered"] == 5


@each_client
def test_a_multicast_reaches_every_client(router: RunningRouter, multicast_address: str, client: str) -> None:
    count, size = 50, 5_000
    with ExitStack() as stack:
        receivers = [
            stack.enter_context(agent(each, "receive", router.port, address=multicast_address, count=count))
            for each in CLIENTS
        ]
        for receiving in receivers:
            receiving.wait_for("ready")
        sending = stack.enter_context(
            agent(client, "send", router.port, address=multicast_address, count=count, size=size)
        )
        sending.wait_for("ready")
        assert sending.result()["outcomes"] == [ACCEPTED] * count
        for receiving in receivers:
            assert receiving.result()["messages"] == [message(number, size) for number in range(count)]


TAKES_ABORTS = [
    "proton",
    pytest.param("rhea", marks=pytest.mark.skip("rhea hands on an aborted delivery as if it were complete")),
    pytest.param("azure", marks=pytest.mark.skip("the azure client hands on an aborted delivery as if complete")),
]


@each_client
@pytest.mark.parametrize("receiver", TAKES_ABORTS)
def test_a_message_whose_sender_is_killed_in_the_middle_is_taken_back(
    router: RunningRouter, multicast_address: str, client: str, receiver: str
) -> None:
    """A slow receiver takes only the first frames: the message is under way when its sender dies."""
    with ExitStack() as stack:
        other = stack.enter_context(agent(receiver, "receive", router.port, address=multicast_address, count=1))
        other.wait_for("ready")
        slow = stack.enter_context(Peer(router.port, incoming_window=4))
        link = slow.attach_receiver(multicast_address, credit=10)
        slow.be_heard()
        killed = stack.enter_context(agent(client, "send", router.port, address=multicast_address, size=BIG))
        killed.wait_for("ready")
        for _ in range(4):
            assert slow.expect(Transfer).more
        killed.kill()
        slow.open_window(10_000)
        while (last := slow.expect(Transfer)).more:
            pass
        assert last.aborted
        other.wait_for("aborted")
        link.delivery_count += 1
        again = stack.enter_context(agent(client, "send", router.port, address=multicast_address, size=BIG))
        again.wait_for("ready")
        assert len(slow.take_message(link)) > BIG
        assert again.result()["outcomes"] == [ACCEPTED]
        assert other.result()["messages"] == [message(0, BIG)]


@each_client
def test_a_large_message_waits_for_a_slow_receiver(router: RunningRouter, address: str, client: str) -> None:
    """The message is larger than the window of the session; the azure client sends all of it nevertheless."""
    with Peer(router.port, incoming_window=4) as late:
        link = late.attach_receiver(address, credit=10)
        late.be_heard()
        with agent(client, "send", router.port, address=address, size=BIG) as sending:
            sending.wait_for("ready")
            for _ in range(4):
                assert late.expect(Transfer).more
            with Peer(router.port) as beside:
                other = beside.attach_receiver(f"{address}.beside", credit=100)
                sender = beside.attach_sender(f"{address}.beside")
                for _ in range(100):
                    sender_says = beside.send_message(sender, bytes(1000))
                    assert beside.take_message(other)
                    assert beside.expect_outcome(sender_says) == Accepted()
            late.open_window(10_000)
            while (transfer := late.expect(Transfer)).more:
                pass
            assert not transfer.aborted
            late.accept(0)
            assert sending.result()["outcomes"] == [ACCEPTED]
        link.delivery_count += 1


@each_client
def test_a_stalled_receiver_does_not_hold_up_its_neighbours(router: RunningRouter, address: str, client: str) -> None:
    """The slow client receives one message and stops; the same clients go on beside it, on their own address."""
    count = 1_000
    with ExitStack() as stack:
        slow = stack.enter_context(agent(client, "receive", router.port, address=address, count=300, hold=1))
        slow.wait_for("ready")
        held_up = stack.enter_context(agent(client, "send", router.port, address=address, count=300, size=10_000))
        slow.wait_for("held")
        fast = stack.enter_context(agent(client, "receive", router.port, address=f"{address}.fast", count=count))
        fast.wait_for("ready")
        sending = stack.enter_context(agent(client, "send", router.port, address=f"{address}.fast", count=count))
        sending.wait_for("ready")
        assert sending.result()["outcomes"] == [ACCEPTED] * count
        assert fast.result()["messages"] == [message(number, 100) for number in range(count)]
        slow.go_on()
        assert slow.result()["messages"] == [message(number, 10_000) for number in range(300)]
        held_up.wait_for("ready")
        assert held_up.result()["outcomes"] == [ACCEPTED] * 300
