"""Run scenarios and print the ledger: `python -m tests.chaos.run [--count N] [SCENARIO ...]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pytest
import trio

from .ledger import Ledger, SpoiledLedger, Totals
from .scenarios import SCENARIOS, Scenario
from .table import HEAD, row, write_into
from .worlds import World


async def play(world: World, scenario: Scenario, count: int, ledger: Ledger | None = None) -> Totals:
    """Run one scenario until ``count`` messages are accepted; return the totals of its ledger."""
    async with scenario.traffic(world, count, ledger or Ledger()) as traffic:
        await scenario.happens(world, traffic)
    return traffic.ledger.totals()


async def _play_all(chosen: Sequence[Scenario], count: int, make_ledger: type[Ledger]) -> dict[Scenario, Totals]:
    rows: dict[Scenario, Totals] = {}
    for make, together in groupby(chosen, lambda each: each.world):
        group = list(together)
        try:
            with tempfile.TemporaryDirectory() as folder, make(Path(folder)) as world:
                for scenario in group:
                    began_s = time.monotonic()
                    totals = rows[scenario] = await play(world, scenario, count, make_ledger())
                    said = ", ".join(totals.failures) or "clean"
                    print(f"{scenario.name}: {said}, {time.monotonic() - began_s:.0f} s", file=sys.stderr, flush=True)
        except pytest.skip.Exception as missing:
            print(f"left out, {', '.join(each.name for each in group)}: {missing}", file=sys.stderr, flush=True)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if every ledger is clean, 1 if one is not, 2 for an unknown scenario."""
    names = {each.name: each for each in SCENARIOS}
    parser = argparse.ArgumentParser(
        prog="make chaos", description="Faults in networks of real routers, with a ledger."
    )
    parser.add_argument("scenario", nargs="*", help=f"one of {', '.join(names)}; all of them when none is named")
    parser.add_argument("--count", type=int, default=100_000, help="messages to be accepted in each (default: 100000)")
    parser.add_argument("--into", type=Path, metavar="PAGE", help="put the rows into the table of this page")
    parser.add_argument("--spoil", action="store_true", help="make wrong entries in each ledger: none may be clean")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.scenario if name not in names]:
        parser.error(f"no scenario is called {', '.join(unknown)}; see --help")
    chosen = [names[name] for name in options.scenario] or SCENARIOS
    found = trio.run(_play_all, chosen, options.count, SpoiledLedger if options.spoil else Ledger)
    rows = {scenario.name: row(scenario, totals) for scenario, totals in found.items()}
    print(*HEAD, *rows.values(), sep="\n")
    if options.into:
        write_into(options.into, rows)
    return int(any(totals.failures for totals in found.values()))


if __name__ == "__main__":
    sys.exit(main())
