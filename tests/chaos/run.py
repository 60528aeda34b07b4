"""Run scenarios and print the ledger: `python -m tests.chaos.run [--count N] [SCENARIO ...]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import trio

from .ledger import Totals, table
from .scenarios import SCENARIOS, Scenario
from .worlds import World


async def play(world: World, scenario: Scenario, count: int) -> Totals:
    """Run one scenario until ``count`` messages are accepted; return its row."""
    address = scenario.address or f"chaos.{scenario.happens.__name__}"
    async with world.traffic(address, scenario.here, scenario.there, count) as traffic:
        await scenario.happens(world, traffic)
    return traffic.ledger.totals()


async def _play_all(chosen: Sequence[Scenario], count: int) -> list[tuple[str, Totals]]:
    rows: list[tuple[str, Totals]] = []
    for make, group in groupby(chosen, lambda each: each.world):
        with tempfile.TemporaryDirectory() as folder, make(Path(folder)) as world:
            for scenario in group:
                began_s = time.monotonic()
                totals = await play(world, scenario, count)
                rows.append((scenario.name, totals))
                said = ", ".join(totals.failures) or "clean"
                print(f"{scenario.name}: {said}, {time.monotonic() - began_s:.0f} s", file=sys.stderr, flush=True)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 when every ledger is clean, 1 when one is not, 2 for a scenario that is not there."""
    names = {each.happens.__name__: each for each in SCENARIOS}
    parser = argparse.ArgumentParser(
        prog="make chaos", description="Faults in networks of real routers, with a ledger."
    )
    parser.add_argument("scenario", nargs="*", help=f"one of {', '.join(names)}; all of them when none is named")
    parser.add_argument("--count", type=int, default=100_000, help="messages to be accepted in each (default: 100000)")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.scenario if name not in names]:
        parser.error(f"no scenario is called {', '.join(unknown)}; see --help")
    chosen = [names[name] for name in options.scenario] or SCENARIOS
    rows = trio.run(_play_all, chosen, options.count)
    print(table(rows))
    return int(any(totals.failures for _, totals in rows))


if __name__ == "__main__":
    sys.exit(main())
