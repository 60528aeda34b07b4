"""The limit on a receiver's unsettled deliveries (security.md 8.5): more messages wait, and senders get no credit."""

from __future__ import annotations

import pytest

from tests.core.test_credit import RULES, check_credit, send, settle
from trouter.core.terms import PeerTerms
from trouter.testing import MemoryRouter
from trouter.testing.memory import LIMITS
from trouter.wire.performatives import Accepted


@pytest.mark.parametrize("granted_first", [False, True])
def test_a_receiver_that_settles_nothing_gets_only_its_limit_of_unsettled_messages(granted_first: bool) -> None:
    router = MemoryRouter(RULES)
    client = router.connect(PeerTerms(max_unsettled=10), limits=LIMITS)
    receiver = client.receiver("x")
    if granted_first:
        receiver.grant(100)
    sent = send(router, client.sender("x"), 25)
    receiver.grant(100)
    router.pump()
    assert len(receiver.received) == 10
    check_credit(router)
    for message in receiver.received[2:5]:
        message.settle()
    router.pump()
    assert len(receiver.received) == 13
    for _ in range(3):
        settle(router, receiver)
    assert [each.outcome for each in sent] == [Accepted()] * 25
    assert receiver.bodies == [b"%d" % number for number in range(25)]
    check_credit(router)


def test_a_receiver_with_too_much_unsettled_may_still_drain() -> None:
    router = MemoryRouter(RULES)
    client = router.connect(PeerTerms(max_unsettled=1), limits=LIMITS)
    receiver = client.receiver("x")
    send(router, client.sender("x"), 3)
    receiver.grant(10)
    receiver.drain()
    router.pump()
    assert (len(receiver.received), receiver.credit, receiver.drained) == (1, 0, 1)


def test_settled_deliveries_are_not_counted_among_them() -> None:
    router = MemoryRouter(RULES)
    client = router.connect(PeerTerms(max_unsettled=1), limits=LIMITS)
    receiver = client.receiver("x")
    receiver.grant(10)
    send(router, client.sender("x"), 5, settled=True)
    assert len(receiver.received) == 5
