"""Sanctions: which are in force, for how long, and how long the router remembers the ended ones."""

from __future__ import annotations

import pytest

from trouter.hooks import Decision
from trouter.policy.sanctions import MAX_SEEN, Sanction, Sanctions, SanctionTarget, target_of


def decision(number: int = 0, action: str = "lock-user", subject: str = "mallory", **more: object) -> Decision:
    return Decision(f"d{number}", action, subject, 1, **more)  # type: ignore[arg-type]


def standing(*decisions: Decision, until_s: float = 10.0, now_s: float = 0.0) -> Sanctions:
    sanctions = Sanctions(lambda: now_s)
    for each in decisions:
        sanctions.add_sanction(Sanction(target_of(each), each, "audit", until_s))
    return sanctions


def test_a_user_is_barred_everywhere_or_under_one_name() -> None:
    sanctions = standing(decision(), decision(subject="eve", vhost="acme"))
    assert sanctions.blocks_user("mallory")
    assert sanctions.blocks_user("mallory", "acme")
    assert not sanctions.blocks_user("eve")
    assert not sanctions.blocks_user("eve", "other")
    assert sanctions.blocks_user("eve", "other", "acme")
    assert not sanctions.blocks_user("")


@pytest.mark.parametrize(
    ("subject", "host", "blocked"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
    ],
)
def test_a_host_is_barred_with_its_place(subject: str, host: str, blocked: bool) -> None:
    assert standing(decision(action="block-host", subject=subject)).blocks_host(host) == blocked


def test_one_order_stands_for_one_subject_and_an_opposite_names_the_same() -> None:
    sanctions = standing(
        decision(1, "slow-tenant", "acme", rate=5), decision(2, "slow-tenant", "acme", rate=7), decision(3)
    )
    assert len(sanctions) == 2
    assert [sanctions.rate_limit(tenant) for tenant in ("acme", "other", "")] == [7, None, None]
    assert sanctions.lift_sanction(target_of(decision(4, "restore-tenant", "acme"))) is not None
    assert sanctions.lift_sanction(SanctionTarget("slow-tenant", "acme")) is None
    assert sanctions.rate_limit("acme") is None


def test_orders_are_over_when_their_time_has_come() -> None:
    assert standing(decision(), now_s=9.9).expired_sanctions() == []
    assert [sanction.decision for sanction in standing(decision(), now_s=10.0).expired_sanctions()] == [decision()]
    assert (standing(decision()).next_s, standing().next_s) == (10.0, float("inf"))


def test_so_many_ids_are_remembered() -> None:
    sanctions = standing()
    for number in range(MAX_SEEN + 1):
        sanctions.remember_decision(decision(number))
    assert sanctions.was_carried_out(decision(0)) is False
    assert sanctions.was_carried_out(decision(1)) is True
    assert sanctions.was_carried_out(decision(1, subject="eve")) is None
