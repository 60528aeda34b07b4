"""Peers that send more than their credit, as brokers do when flows cross messages under way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.rows import link_row, router_row
from trouter.core.autolinks import AutoLinkRule
from trouter.core.routes import LinkRoute
from trouter.core.terms import CONTAINER_OVERDRAFT, PeerTerms
from trouter.testing import MemoryReceiver, MemoryRouter, MemorySender, SentMessage, compose
from trouter.testing.memory import LIMITS
from trouter.wire.performatives import Accepted, Released


class Ends:
    """A sender and a receiver of q, over a routed link to a broker's queue or over an address."""

    def __init__(self, *, routed: bool) -> None:
        self.router = MemoryRouter()
        client = self.router.connect()
        self.sender: MemorySender
        if routed:
            self.router.core.routes.add(LinkRoute("q", "out", is_prefix=True, container_id="B"), iter(()))
            broker = self.router.connect(limits=LIMITS, container_id="B", role="route-container")
            self.receiver: MemoryReceiver = client.receiver("q", credit=10)
            (far,) = broker.attached
            assert isinstance(far, MemorySender)
            self.sender = far
        else:
            self.receiver = client.receiver("q", credit=10)
            self.sender = self.router.connect(PeerTerms(10)).sender("q")
        self.router.pump()
        assert self.sender.credit == 10

    def overdraw(self, count: int) -> None:
        """Use up all credit and send ``count`` more."""
        self.sender.link.credit += count
        for number in range(self.sender.link.credit):
            self.sender.send(compose(b"%d" % number))
        self.router.pump()

    def came(self) -> int:
        return len(self.receiver.received)

    def row(self) -> dict[str, object]:
        (incoming,) = self.router.core.incoming_endpoints()
        return link_row(self.router.core, incoming)


@pytest.mark.parametrize("routed", [False, True])
def test_messages_beyond_the_credit_are_served_counted_and_reported_once(routed: bool) -> None:
    ends = Ends(routed=routed)
    ends.overdraw(1)
    assert ends.sender.detached is None
    assert ends.came() == 10
    ends.overdraw(9)
    assert ends.row()["overdrawnCount"] == 10
    assert ends.row()["creditAvailable"] == 0
    assert router_row(ends.router.core)["overdrawnDeliveries"] == 10
    notices = [notice.text for notice in ends.router.core.watch_links(1.0)]
    assert sum("more than it has credit for" in text for text in notices) == 1
    assert not any("more than" in notice.text for notice in ends.router.core.watch_links(2.0))
    ends.receiver.grant(10)
    ends.router.pump()
    assert ends.came() == 20
    for message in ends.receiver.received:
        message.settle()
    ends.receiver.grant(10)
    ends.router.pump()
    assert ends.sender.credit == ends.row()["creditAvailable"]
    assert 0 < ends.sender.credit <= 10


@pytest.mark.parametrize(("routed", "limit"), [(False, 10), (True, 10 * CONTAINER_OVERDRAFT)])
def test_more_than_the_overdraft_ends_the_link(routed: bool, limit: int) -> None:
    """A broker overdraws its credit once for every flow that crosses messages, a client once."""
    ends = Ends(routed=routed)
    conditions = []
    for count in (limit, 1):
        ends.overdraw(count)
        conditions.append(ends.sender.error and ends.sender.error.condition)
    assert conditions == [None, "amqp:link:transfer-limit-exceeded"]


@pytest.mark.parametrize(("role", "wanted"), [("normal", [8, 8, 10]), ("route-container", [4, 6, 5])])
def test_a_broker_gets_more_credit_once_it_has_used_all_of_it(role: str, wanted: list[int]) -> None:
    """At each flow the broker has nothing under way: RabbitMQ takes the flow for credit on top of that."""
    router = MemoryRouter()
    receiver = router.connect().receiver("q", credit=100)
    sender = router.connect(PeerTerms(10), role=role).sender("q")

    def send(count: int) -> int:
        """Send and settle messages; return the credit that is left."""
        for number in range(count):
            sender.send(compose(b"%d" % number))
        router.pump()
        for message in receiver.received:
            message.settle()
        receiver.received.clear()
        router.pump()
        return sender.credit

    found = [send(6), send(sender.credit)]
    send(1)
    while router.core.return_owed_credit(10):
        pass
    router.pump()
    found.append(sender.credit)  # a while after the last one
    assert found == wanted


def early(sender: MemorySender, count: int) -> list[SentMessage]:
    """Send ``count`` messages, whatever the credit is."""
    sender.link.credit += count
    return [sender.send(compose(b"%d" % number)) for number in range(count)]


class Auto:
    """An auto link whose broker sends ``count`` messages right after its attach, before it has credit."""

    def __init__(self, count: int, *, consumer: bool, one_read: bool) -> None:
        self.router = MemoryRouter()
        self.receiver = self.router.connect().receiver("q", credit=100) if consumer else None
        self.auto = self.router.core.auto_links.add_rule(AutoLinkRule("q", "in", container_id="B"))
        self.broker = self.router.connect(PeerTerms(10), container_id="B")
        self.broker.terms = replace(self.broker.terms, role="route-container")
        self.broker.answers = False
        self.router.core.container_came(self.broker.as_container())
        self.router.pump()
        (sender,) = self.broker.attached
        assert isinstance(sender, MemorySender)
        self.sender = sender
        sender.answer()
        if not one_read:
            self.broker.write()
        self.sent = early(sender, count)
        self.router.pump()

    def left(self) -> int:
        """The sender's credit, as the router counts it."""
        (incoming,) = self.router.core.incoming_endpoints()
        assert incoming.link.credit == self.sender.credit
        return self.sender.credit


@pytest.mark.parametrize("one_read", [False, True])
@pytest.mark.parametrize("count", [1, 10])
def test_a_broker_that_sends_before_it_has_credit_is_told_that_there_is_no_consumer(count: int, one_read: bool) -> None:
    """RabbitMQ 3.6 does so."""
    ends = Auto(count, consumer=False, one_read=one_read)
    assert [each.history for each in ends.sent] == [[(Released(), True)]] * count
    assert ends.sender.detached is None
    assert ends.auto.state == "active"
    receiver = ends.router.connect().receiver("q", credit=100)
    ends.router.pump()
    assert ends.sender.credit == 10
    sent = ends.sender.send(compose(b"again"))
    ends.router.pump()
    assert receiver.bodies == [b"again"]
    receiver.received[0].settle()
    ends.router.pump()
    assert sent.history == [(Accepted(), True)]


@pytest.mark.parametrize("one_read", [False, True])
@pytest.mark.parametrize("count", [1, 10])
def test_a_broker_that_sends_before_it_has_credit_is_heard_and_gets_the_rest(count: int, one_read: bool) -> None:
    ends = Auto(count, consumer=True, one_read=one_read)
    assert ends.receiver is not None
    assert len(ends.receiver.bodies) == count
    assert ends.left() <= 10
    for message in ends.receiver.received:
        message.settle()
    ends.router.pump()
    assert 0 < ends.left() <= 10
    assert ends.auto.state == "active"


@pytest.mark.parametrize("capacity", [10, 250])
def test_a_broker_that_goes_on_without_credit_loses_its_link(capacity: int) -> None:
    """Before its first credit it may send about as much as the link has capacity."""
    router = MemoryRouter()
    router.core.auto_links.add_rule(AutoLinkRule("q", "in", container_id="B"))
    broker = router.connect(PeerTerms(capacity), container_id="B", role="route-container")
    (sender,) = broker.attached
    assert isinstance(sender, MemorySender)
    allowed = 0
    while sender.detached is None:
        early(sender, 1)
        router.pump()
        allowed += 1
    assert capacity < allowed <= capacity + CONTAINER_OVERDRAFT
    assert sender.error is not None
    assert sender.error.condition == "amqp:link:transfer-limit-exceeded"


@pytest.mark.parametrize("credit", [0, 1, 5])
def test_what_a_container_sends_before_credit_waits_for_the_client_of_a_routed_link(credit: int) -> None:
    router = MemoryRouter()
    router.core.routes.add(LinkRoute("q", "out", is_prefix=True, container_id="B"), iter(()))
    broker = router.connect(PeerTerms(10), container_id="B", role="route-container")
    client = router.connect()
    receiver = client.receiver("q")
    router.pump()
    (far,) = broker.attached
    assert isinstance(far, MemorySender)
    early(far, 3)
    router.pump()
    assert (far.detached, receiver.received) == (None, [])
    receiver.grant(credit)
    router.pump()
    assert receiver.bodies == [b"0", b"1", b"2"][:credit]
    assert far.credit == max(0, credit - 3)
    receiver.grant(5)
    router.pump()
    assert receiver.bodies == [b"0", b"1", b"2"]
    assert far.credit == credit + 2
