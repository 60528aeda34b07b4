"""The ledger finds what it is there to find."""

from __future__ import annotations

import pytest

from tests.chaos.ledger import Heard, Ledger, table


@pytest.fixture
def ledger() -> Ledger:
    """Two attempts that came, were accepted, and were heard of so."""
    made = Ledger()
    for _ in range(2):
        number = made.attempt()
        made.arrive(number, accepted=True)
        made.heard[number] = Heard.ACCEPTED
    return made


def test_a_ledger_without_a_failure_is_clean(ledger: Ledger) -> None:
    assert ledger.totals().failures == []
    assert (ledger.totals().attempted, ledger.totals().accepted, ledger.totals().received) == (2, 2, 2)


def test_what_was_accepted_and_never_came_is_lost(ledger: Ledger) -> None:
    ledger.heard[ledger.attempt()] = Heard.ACCEPTED
    assert ledger.totals().failures == ["lost: 1"]


def test_what_was_accepted_although_the_receiver_released_it_is_falsely_accepted(ledger: Ledger) -> None:
    number = ledger.attempt()
    ledger.arrive(number, accepted=False)
    ledger.heard[number] = Heard.ACCEPTED
    assert ledger.totals().failures == ["falsely accepted: 1"]


@pytest.mark.parametrize(("broker", "told"), [(False, ["duplicated: 1"]), (True, [])])
def test_what_came_twice_is_duplicated_unless_a_broker_may_deliver_again(
    ledger: Ledger, broker: bool, told: list[str]
) -> None:
    ledger.at_least_once = broker
    ledger.arrive(0, accepted=True)
    assert ledger.totals().failures == told
    assert ledger.totals().redelivered == broker


def test_what_has_no_outcome_is_stuck_unless_the_senders_connection_was_lost(ledger: Ledger) -> None:
    ledger.attempt()
    ledger.heard[ledger.attempt()] = Heard.CONNECTION_LOST
    assert ledger.totals().failures == ["stuck: 1"]
    assert ledger.totals().unknown == 1


def test_a_row_has_every_number_and_the_times(ledger: Ledger) -> None:
    ledger.recovery_s.append(0.25)
    assert (
        table([("nothing", ledger.totals())]).splitlines()[2]
        == "| nothing | 2 | 2 | 0 | 0 | 2 | 0 | 0 | 0 | 0 | 0 | 0.25 s |"
    )
