"""Orders: what stands, for how long, and what is remembered of those that were obeyed."""

from __future__ import annotations

import pytest

from trouter.hooks import Decision
from trouter.net.orders import MAX_SEEN, Order, Orders, Target, target_of


def decision(number: int = 0, action: str = "lock-user", subject: str = "mallory", **more: object) -> Decision:
    return Decision(f"d{number}", action, subject, 1, **more)  # type: ignore[arg-type]


def standing(*decisions: Decision, until_s: float = 10.0, now_s: float = 0.0) -> Orders:
    orders = Orders(lambda: now_s)
    for each in decisions:
        orders.put(Order(target_of(each), each, "audit", until_s))
    return orders


def test_a_user_is_barred_everywhere_or_under_one_name() -> None:
    orders = standing(decision(), decision(subject="eve", vhost="acme"))
    assert orders.bars_user("mallory")
    assert orders.bars_user("mallory", "acme")
    assert not orders.bars_user("eve")
    assert not orders.bars_user("eve", "other")
    assert orders.bars_user("eve", "other", "acme")
    assert not orders.bars_user("")


@pytest.mark.parametrize(
    ("subject", "host", "barred"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
    ],
)
def test_a_host_is_barred_with_its_place(subject: str, host: str, barred: bool) -> None:
    assert standing(decision(action="block-host", subject=subject)).bars_host(host) == barred


def test_one_order_stands_for_one_subject_and_an_opposite_names_the_same() -> None:
    orders = standing(
        decision(1, "slow-tenant", "acme", rate=5), decision(2, "slow-tenant", "acme", rate=7), decision(3)
    )
    assert (len(orders), orders.rate("acme"), orders.rate("other"), orders.rate("")) == (2, 7, None, None)
    assert orders.lift(target_of(decision(4, "restore-tenant", "acme"))) is not None
    assert orders.lift(Target("slow-tenant", "acme")) is None
    assert orders.rate("acme") is None


def test_orders_are_over_when_their_time_has_come() -> None:
    assert standing(decision(), now_s=9.9).over() == []
    assert [order.decision for order in standing(decision(), now_s=10.0).over()] == [decision()]
    assert (standing(decision()).next_s, standing().next_s) == (10.0, float("inf"))


def test_so_many_ids_are_remembered() -> None:
    orders = standing()
    for number in range(MAX_SEEN + 1):
        orders.remember(decision(number))
    assert orders.seen(decision(0)) is False
    assert orders.seen(decision(1)) is True
    assert orders.seen(decision(1, subject="eve")) is None
