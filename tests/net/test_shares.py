"""Shares of the processor, and work that waits in their order."""

from __future__ import annotations

import pytest

from trouter.net.shares import MOST_OWED_S, FairQueue, ProcessorShare, Shares

pytestmark = pytest.mark.attack


def order(queue: FairQueue, cost_s: float = 0.0) -> str:
    """Return the items in the order in which they come; each costs its share so many seconds."""
    found = []
    while queue.count:
        item, _ = queue.pop()
        found.append(item)
        SHARE_OF[item[0]].charge(cost_s)
    return " ".join(found)


SHARE_OF: dict[str, ProcessorShare] = {}


@pytest.fixture
def shares() -> Shares:
    shares = Shares()
    SHARE_OF.clear()
    SHARE_OF.update({name: shares.join(name) for name in "abc"})
    return shares


def waiting(shares: Shares, *items: str) -> FairQueue:
    queue = FairQueue(shares)
    for item in items:
        queue.add(SHARE_OF[item[0]], item)
    return queue


def test_items_of_one_share_come_in_the_order_in_which_they_were_added(shares: Shares) -> None:
    assert order(waiting(shares, "a1", "a2", "a3"), 1.0) == "a1 a2 a3"


def test_shares_that_take_the_same_come_in_turn(shares: Shares) -> None:
    assert order(waiting(shares, "a1", "a2", "a3", "b1", "b2", "c1"), 1.0) == "a1 b1 c1 a2 b2 a3"


def test_the_share_that_has_taken_least_is_next(shares: Shares) -> None:
    turn_s = MOST_OWED_S / 10
    SHARE_OF["a"].charge(2.5 * turn_s)
    assert order(waiting(shares, "a1", "a2", "b1", "b2", "b3", "b4"), turn_s) == "b1 b2 b3 a1 b4 a2"


def test_what_was_charged_while_an_item_waited_counts(shares: Shares) -> None:
    queue = waiting(shares, "a1", "b1", "c1")
    SHARE_OF["a"].charge(2.0)
    SHARE_OF["b"].charge(1.0)
    assert order(queue) == "c1 b1 a1"


def test_a_share_that_was_idle_may_not_claim_the_time_before(shares: Shares) -> None:
    queue = waiting(shares, "a1", "a2", "a3", "a4")
    for _ in range(2):
        queue.pop()
        SHARE_OF["a"].charge(10.0)
    for item in ("b1", "b2", "b3"):
        queue.add(SHARE_OF["b"], item)
    assert order(queue, 10.0) == "b1 a3 b2 a4 b3"


def turns_before(queue: FairQueue, own: str, turn_s: float) -> int:
    """Return the turns of a share that always wants more, before ``own`` comes."""
    turns = 0
    while (item := queue.pop()[0]) != own:
        SHARE_OF[item[0]].charge(turn_s)
        queue.add(SHARE_OF[item[0]], item)
        turns += 1
        assert turns < 1000
    return turns


def test_what_was_taken_while_nothing_waited_is_no_debt_to_a_newcomer(shares: Shares) -> None:
    SHARE_OF["a"].charge(3600.0)  # a day of work, beside which there was time for all
    turn_s = MOST_OWED_S / 10
    assert turns_before(waiting(shares, "a1", "b1"), "a1", turn_s) <= 10


def test_what_was_taken_elsewhere_while_nothing_of_it_waited_here_is_no_debt(shares: Shares) -> None:
    turn_s = MOST_OWED_S / 10
    queue = waiting(shares, "b1", "a1", "b2")
    assert turns_before(queue, "a1", turn_s) <= 1
    for _ in range(3):
        SHARE_OF["a"].charge(3600.0)
        queue.add(SHARE_OF["a"], "a1")
        assert turns_before(queue, "a1", turn_s) <= 11


def test_a_share_that_begins_to_wait_again_and_again_leaves_nothing_behind(shares: Shares) -> None:
    queue = waiting(shares, "b1", "c1")
    for _ in range(1000):
        SHARE_OF["a"].charge(1.0)
        queue.add(SHARE_OF["a"], "a1")
        queue.add(SHARE_OF["a"], "a2")
        queue.discard("a1")
        assert turns_before(queue, "a2", MOST_OWED_S) <= 4
    assert order(queue) in ("b1 c1", "c1 b1")


def test_a_router_takes_eight_times_as_much_of_the_processor(shares: Shares) -> None:
    router = shares.join("router", 8)
    router.charge(8.0)
    SHARE_OF["a"].charge(1.0)
    assert router.spent_s == SHARE_OF["a"].spent_s


def test_an_item_waits_once_and_comes_with_its_last_value(shares: Shares) -> None:
    queue = FairQueue(shares)
    for value in (1, 4, 5):
        queue.add(SHARE_OF["a"], "a1", value)
    assert queue.count == 1
    assert queue.pop() == ("a1", 5)


def test_an_item_that_is_discarded_does_not_come(shares: Shares) -> None:
    queue = waiting(shares, "a1", "b1", "a2", "b2")
    for item in ("b1", "b2", "c1"):
        queue.discard(item)
    assert order(queue) == "a1 a2"
    queue.add(SHARE_OF["b"], "b1")
    queue.discard("b1")
    with pytest.raises(IndexError):
        queue.pop()


def test_a_share_lasts_as_long_as_a_connection_has_it() -> None:
    shares = Shares()
    first, second = shares.join(("user", "alice")), shares.join(("user", "alice"))
    assert first is second
    shares.leave(first)
    assert len(shares) == 1
    shares.leave(second)
    assert len(shares) == 0
    for number in range(1000):
        shares.leave(shares.join(("host", number)))
    assert len(shares) == 0
