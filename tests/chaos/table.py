"""The table of the scenarios' totals, on the terminal and in the manual; a run replaces the rows of its scenarios."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from .ledger import Recovery, Totals
from .scenarios import SCENARIOS, Scenario

_COLUMNS: Final = (
    *("scenario", "what happens"),
    *("attempted", "accepted", "returned", "unknown", "received", "redelivered"),
    *("lost", "falsely accepted", "duplicated", "stuck"),
    "longest recovery",
)
#: The two head lines of the table.
HEAD: Final = (f"| {' | '.join(_COLUMNS)} |", f"|---|---|{'---:|' * 10}---|")
_ROW: Final = re.compile(r"\| `(\w+)` \|")


def row(scenario: Scenario, totals: Totals) -> str:
    """Return the row of a scenario, in Markdown."""
    sent = (totals.attempted, totals.accepted, totals.returned, totals.unknown)
    came = (totals.received, totals.redelivered)
    failed = (totals.lost, totals.falsely_accepted, totals.duplicated, totals.stuck)
    numbers = (f"{number:,}" for number in (*sent, *came, *failed))
    return f"| {' | '.join((f'`{scenario.name}`', scenario.about, *numbers, _words(totals.recovery)))} |"


def _words(recovery: Recovery | None) -> str:
    if recovery is None:
        return "none awaited"
    return f"{recovery.seconds:.2f} s" + (f", {recovery.away_s:.2f} s of it away" if recovery.away_s else "")


def rows_in(text: str) -> dict[str, str]:
    """Return the rows of a page by scenario."""
    return {found[1]: line for line in text.splitlines() if (found := _ROW.match(line))}


def write_into(page: Path, fresh: Mapping[str, str]) -> None:
    """Write rows into the table of a page, in the order of the scenarios.

    Raise OSError if the page cannot be read or written, ValueError if it has no table.
    """
    before, head, rest = page.read_text().partition("\n".join(HEAD) + "\n")
    if not head:
        raise ValueError(f"{page} has no table of scenarios")
    rows = {**rows_in(rest), **fresh}
    after = [line for line in rest.splitlines() if not _ROW.match(line)]
    ordered = [rows[each.name] for each in SCENARIOS if each.name in rows]
    page.write_text(before + head + "\n".join([*ordered, *after]) + "\n")
