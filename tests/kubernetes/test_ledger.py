"""The ledger contradicts a router that reports another outcome than what happened to an attempt."""

from __future__ import annotations

import ssl

import pytest

from tests.kubernetes.ledger import Clients, Ledger


@pytest.mark.parametrize(
    ("outcome", "times", "told"),
    [
        ("accepted", 1, False),
        ("accepted", 2, True),
        ("accepted", 0, True),
        ("released", 0, False),
        ("released", 1, True),
        ("rejected", 1, True),
        ("modified", 1, True),
        ("modified, delivery-failed", 0, False),
        ("modified, delivery-failed", 1, False),
        ("modified, delivery-failed", 2, True),
        ("unknown", 1, False),
        ("unknown", 2, True),
    ],
)
def test_an_attempt_may_arrive_as_often_as_its_outcome_says(outcome: str, times: int, told: bool) -> None:
    ledger = Ledger(Clients("amqp://127.0.0.1", "ann", "", ssl.create_default_context()), "news")
    ledger.outcomes[7] = [outcome]
    ledger.received[7, 0] = times
    assert bool(ledger.contradicted) is told


def test_a_message_that_came_twice_is_listed_with_the_outcomes_of_its_attempts() -> None:
    ledger = Ledger(Clients("amqp://127.0.0.1", "ann", "", ssl.create_default_context()), "news")
    ledger.outcomes[7] = ["released", "modified, delivery-failed", "accepted"]
    ledger.received.update([(7, 1), (7, 2), (8, 0)])
    ledger.outcomes[8] = ["accepted"]
    assert ledger.twice == {7: ["modified, delivery-failed", "accepted"]}
    assert not ledger.contradicted
