"""Stuck deliveries and blocked links (routing.md 5.6)."""

from __future__ import annotations

import pytest

from trouter.core import watch
from trouter.core.terms import PeerTerms
from trouter.core.watch import STUCK_TEXT
from trouter.testing import MemoryReceiver, MemoryRouter, SentMessage, compose


def scan(router: MemoryRouter, now_s: float) -> list[str]:
    router.now_s = now_s
    return sorted(notice.text for notice in router.core.watch_links(now_s))


def stuck_pair(credit: int = 10) -> tuple[MemoryRouter, MemoryReceiver, SentMessage]:
    router = MemoryRouter()
    client = router.connect()
    receiver = client.receiver("x", credit=credit)
    sent = client.sender("x").send(compose(b"x"))
    router.pump()
    return router, receiver, sent


@pytest.mark.parametrize("credit", [10, 1, 0])
def test_a_stuck_delivery_counts_on_both_of_its_links_until_it_ends(credit: int) -> None:
    router, receiver, _ = stuck_pair(credit)
    core = router.core
    assert scan(router, 10.0) == []
    assert core.deliveries_stuck() == 0
    assert scan(router, 20.1).count(STUCK_TEXT) == 2
    assert core.deliveries_stuck() == 2
    links = [each.link for each in core.incoming_endpoints()] + [each.link for each in core.outgoing_endpoints()]
    assert [core.deliveries_stuck(link) for link in links] == [1, 1]
    assert STUCK_TEXT not in scan(router, 40.0)
    assert core.deliveries_stuck() == 2
    receiver.grant(1)
    router.pump()
    assert core.deliveries_stuck() == 2
    receiver.received[0].settle()
    router.pump()
    assert core.deliveries_stuck() == 0


@pytest.mark.parametrize("credit", [10, 0])
def test_a_stuck_delivery_ends_with_its_link(credit: int) -> None:
    router, receiver, sent = stuck_pair(credit)
    scan(router, 20.0)
    receiver.detach()
    assert sent.settled
    assert router.core.deliveries_stuck() == 0


def test_the_age_is_the_deliverys_own() -> None:
    router, _, sent = stuck_pair()
    router.now_s = 15.0
    sent.sender.send(compose(b"y"))
    router.pump()
    scan(router, 20.0)
    assert router.core.deliveries_stuck() == 2
    scan(router, 31.0)
    assert router.core.deliveries_stuck() == 4


def test_presettled_messages_that_wait_are_stuck_on_the_outgoing_link() -> None:
    router = MemoryRouter()
    client = router.connect()
    receiver = client.receiver("x")
    client.sender("x").send(compose(b"x"), settled=True)
    router.pump()
    scan(router, 20.0)
    assert router.core.deliveries_stuck() == 1
    receiver.grant(1)
    router.pump()
    assert router.core.deliveries_stuck() == 0


def test_an_unfinished_message_is_stuck_too() -> None:
    router = MemoryRouter()
    client = router.connect()
    client.receiver("x", credit=1)
    sent = client.sender("x").begin(compose(bytes(200_000)))
    router.pump()
    scan(router, 20.0)
    assert router.core.deliveries_stuck() == 2
    sent.abort()
    router.pump()
    assert router.core.deliveries_stuck() == 0


def test_a_link_without_credit_is_blocked_until_it_has_some() -> None:
    router = MemoryRouter()
    client = router.connect()
    receiver = client.receiver("x")
    assert scan(router, 10.0) == []
    assert scan(router, 20.5) == ["Link blocked with zero credit for 20 seconds"]
    assert scan(router, 31.0) == []
    assert router.core.links_blocked() == 1
    assert router.core.zero_credit_s(next(iter(router.core.outgoing_endpoints())).link) == 31.0
    receiver.grant(1)
    router.pump()
    assert router.core.links_blocked() == 0
    assert router.core.zero_credit_s(next(iter(router.core.outgoing_endpoints())).link) == 0.0
    assert scan(router, 140.0) == ["Link unblocked"]
    assert scan(router, 160.0) == []


def test_a_link_that_had_credit_between_two_looks_is_not_blocked() -> None:
    router, receiver, sent = stuck_pair(1)
    for now_s in (11.0, 22.0, 33.0):
        router.now_s = now_s - 2.0
        receiver.received[-1].settle()
        receiver.grant(1)
        sent.sender.send(compose(b"x"))
        router.pump()
        assert not [text for text in scan(router, now_s) if "blocked" in text]
        assert zero_credit(router) == [2.0, 0.0]
    assert router.core.links_blocked() == 0


def test_a_link_that_had_credit_is_no_longer_blocked_though_it_has_none_again() -> None:
    router, receiver, sent = stuck_pair(1)
    assert "Link blocked with zero credit for 30 seconds" in scan(router, 30.0)
    receiver.received[-1].settle()
    receiver.grant(1)
    sent.sender.send(compose(b"x"))
    router.pump()
    assert router.core.links_blocked() == 0
    assert scan(router, 40.0) == ["Link unblocked"]
    assert scan(router, 50.5) == ["Link blocked with zero credit for 20 seconds"]


def zero_credit(router: MemoryRouter) -> list[float]:
    return [router.core.zero_credit_s(each.link) for each in router.core.links.values()]


def test_a_receiver_has_been_without_credit_since_it_used_the_last() -> None:
    router, receiver, sent = stuck_pair(2)
    assert zero_credit(router) == [0.0, 0.0]
    router.now_s = 3.0
    sent.sender.send(compose(b"x"))
    router.pump()
    router.now_s = 7.0
    assert zero_credit(router) == [4.0, 0.0]
    receiver.grant(1)
    router.pump()
    assert zero_credit(router) == [0.0, 0.0]
    receiver.drain()
    router.pump()
    router.now_s = 8.0
    assert zero_credit(router) == [1.0, 0.0]


def test_a_sender_has_been_without_credit_since_it_used_the_last() -> None:
    router = MemoryRouter()
    client = router.connect(PeerTerms(link_capacity=2))
    sender = client.sender("x")
    router.now_s = 1.0
    assert zero_credit(router) == [1.0]
    receiver = client.receiver("x", credit=10)
    assert zero_credit(router) == [0.0, 0.0]
    router.now_s = 2.0
    for _ in range(2):
        sender.send(compose(b"x"))
    router.pump()
    router.now_s = 5.0
    assert zero_credit(router) == [3.0, 0.0]
    receiver.received[0].settle()
    router.pump()
    assert zero_credit(router) == [0.0, 0.0]
    receiver.detach()
    sender.send(compose(b"x"))
    router.pump()
    router.now_s = 6.5
    assert sender.drains
    assert zero_credit(router) == [1.5]


def test_the_time_never_runs_backwards_for_readers_between_two_rounds() -> None:
    router = MemoryRouter()
    router.connect().receiver("x")
    router.core.shared.now_s = -5.0
    assert zero_credit(router) == [0.0]


def test_a_blocked_link_that_goes_is_no_longer_counted() -> None:
    router = MemoryRouter()
    client = router.connect()
    client.receiver("x")
    for now_s in (100.0, 111.0, 122.0):
        scan(router, now_s)
    assert router.core.links_blocked() == 1
    client.drop()
    assert router.core.links_blocked() == 0


def test_a_call_looks_at_a_portion_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PORTION", 10)
    router = MemoryRouter()
    for number in range(10):
        client = router.connect()
        for _ in range(4):
            client.receiver(f"x{number}")
    looked = 0
    looks = 0
    while looked < 40:
        router.core.watch_links(100.0 + looks)
        looks += 1
        before, looked = looked, len(router.core._watch._stalled)
        assert 0 < looked - before <= 12
    assert looks == 5
