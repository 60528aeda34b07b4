"""Owed credit below the threshold for a flow is granted when the sender sends no more for a moment."""

from __future__ import annotations

import pytest

from trouter.core.terms import PeerTerms
from trouter.testing import MemoryReceiver, MemoryRouter, MemorySender, compose

CAPACITY = 10


class Pair:
    """A sender that continues only after a flow, and a receiver."""

    def __init__(self) -> None:
        self.router = MemoryRouter()
        self.rung = 0
        self.router.core.shared.owed_listeners.add(self.ring)
        self.receiver: MemoryReceiver = self.router.connect().receiver("q", credit=100)
        self.sender: MemorySender = self.router.connect(PeerTerms(CAPACITY)).sender("q")
        self.router.pump()

    def ring(self) -> None:
        self.rung += 1

    def send(self, count: int, *, settled: bool = False) -> None:
        """Send messages, and accept all of them."""
        for number in range(count):
            self.sender.send(compose(b"%d" % number), settled=settled)
        self.router.pump()
        for message in self.receiver.received:
            if not message.delivery.settled:
                message.settle()
        self.router.pump()

    def look(self) -> bool:
        more = self.router.core.return_owed_credit(100)
        self.router.pump()
        return more


@pytest.mark.parametrize("settled", [False, True])
def test_owed_credit_is_granted_when_no_message_comes(settled: bool) -> None:
    pair = Pair()
    pair.send(3, settled=settled)
    assert pair.sender.credit == CAPACITY - 3
    assert pair.rung == 1
    while pair.look():
        pass
    assert pair.sender.credit == CAPACITY


def test_a_sender_that_goes_on_is_looked_at_again() -> None:
    pair = Pair()
    pair.send(2)
    pair.sender.send(compose(b"more"))
    pair.router.pump()
    assert pair.look()
    assert pair.sender.credit == CAPACITY - 3
    assert not pair.look()
    assert pair.sender.credit == CAPACITY - 1  # one is not settled yet
    assert pair.rung == 1


def test_a_sender_that_is_gone_is_owed_nothing() -> None:
    pair = Pair()
    pair.send(1)
    pair.sender.detach()
    assert not pair.look()


def test_only_the_requested_number_of_links_is_examined() -> None:
    pair = Pair()
    other = pair.router.connect(PeerTerms(CAPACITY)).sender("q")
    pair.send(1)
    other.send(compose(b"other"))
    pair.send(0)
    assert pair.router.core.return_owed_credit(1)
    assert not pair.router.core.return_owed_credit(1)
    pair.router.pump()
    assert (pair.sender.credit, other.credit) == (CAPACITY, CAPACITY)
