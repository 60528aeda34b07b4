"""Peers that send more than their credit, as brokers do when flows cross messages under way."""

from __future__ import annotations

import pytest

from tests.core.rows import link_row, router_row
from trouter.core.routes import LinkRoute
from trouter.core.terms import CONTAINER_OVERDRAFT, PeerTerms
from trouter.testing import MemoryReceiver, MemoryRouter, MemorySender, compose
from trouter.testing.memory import LIMITS


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
