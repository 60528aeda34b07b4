"""The ledger detects each planted failure."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.chaos import run
from tests.chaos.ledger import Heard, Ledger, Recovery, SpoiledLedger
from tests.chaos.scenarios import SCENARIOS
from tests.chaos.table import HEAD, row, rows_in, write_into
from tests.routers import ROOT


@pytest.fixture
def ledger() -> Ledger:
    """Return a ledger of two attempts that arrived and were accepted, with their outcomes."""
    made = Ledger()
    for _ in range(2):
        number = made.attempt()
        made.arrive(number, accepted=True)
        made.heard[number] = Heard.ACCEPTED
    return made


def test_a_ledger_without_a_failure_is_clean(ledger: Ledger) -> None:
    assert ledger.totals().failures == []
    assert (ledger.totals().attempted, ledger.totals().accepted, ledger.totals().received) == (2, 2, 2)


def test_an_accepted_message_that_never_arrives_is_lost(ledger: Ledger) -> None:
    ledger.heard[ledger.attempt()] = Heard.ACCEPTED
    assert ledger.totals().failures == ["lost: 1"]


def test_an_accepted_message_that_the_receiver_released_is_falsely_accepted(ledger: Ledger) -> None:
    number = ledger.attempt()
    ledger.arrive(number, accepted=False)
    ledger.heard[number] = Heard.ACCEPTED
    assert ledger.totals().failures == ["falsely accepted: 1"]


@pytest.mark.parametrize(("broker", "told"), [(False, ["duplicated: 1"]), (True, [])])
def test_a_message_that_arrives_twice_is_duplicated_unless_a_broker_may_redeliver(
    ledger: Ledger, broker: bool, told: list[str]
) -> None:
    ledger.at_least_once = broker
    ledger.arrive(0, accepted=True)
    assert ledger.totals().failures == told
    assert ledger.totals().redelivered == broker


def test_a_message_without_an_outcome_is_stuck_unless_its_sender_lost_the_connection(ledger: Ledger) -> None:
    ledger.attempt()
    ledger.heard[ledger.attempt()] = Heard.CONNECTION_LOST
    assert ledger.totals().failures == ["stuck: 1"]
    assert ledger.totals().unknown == 1


def test_a_spoiled_ledger_shows_every_failure_once() -> None:
    spoiled = SpoiledLedger()
    for _ in range(10):
        number = spoiled.attempt()
        spoiled.arrive(number, accepted=True)
        spoiled.hear(number, Heard.ACCEPTED)
    assert spoiled.totals().failures == ["lost: 1", "falsely accepted: 1", "duplicated: 1", "stuck: 1"]


def test_a_row_has_every_number_and_the_longest_time(ledger: Ledger) -> None:
    ledger.recoveries += [Recovery(0.25), Recovery(2.5, 1.0), Recovery(1.0)]
    written = row(SCENARIOS[0], ledger.totals())
    assert written.startswith(
        "| `connection_reset` | The connection between two routers is reset, three times. | 2 | 2 |"
    )
    assert written.endswith("| 2.50 s, 1.00 s of it away |")
    assert written.count("|") == HEAD[0].count("|") == HEAD[1].count("|")


def test_rows_go_into_a_page_in_order_and_replace_older_rows(ledger: Ledger, tmp_path: Path) -> None:
    page = tmp_path / "faults.md"
    first, second, third = (row(each, ledger.totals()) for each in SCENARIOS[:3])
    page.write_text("\n".join(["Before", "", *HEAD, "| `connection_slow` | old |", first, "", "After", ""]))
    write_into(page, {SCENARIOS[1].name: second, SCENARIOS[2].name: third})
    assert page.read_text().splitlines() == ["Before", "", *HEAD, first, second, third, "", "After"]
    page.write_text("no table\n")
    with pytest.raises(ValueError, match="has no table"):
        write_into(page, {})


def test_a_scenario_that_cannot_run_is_reported_with_the_reason_and_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert run.main(["partition", "half_open"]) == 0
    said = capsys.readouterr()
    assert re.match("left out, partition, half_open: .*(root|missing)", said.err)
    assert said.out.splitlines() == list(HEAD)


def test_the_manual_has_a_row_for_every_scenario() -> None:
    rows = rows_in((ROOT / "docs/faults.md").read_text())
    assert {name: line.split(" | ")[1] for name, line in rows.items()} == {each.name: each.about for each in SCENARIOS}
