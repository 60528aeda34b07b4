"""Compare this checkout's router with that of another one: each load on both by turns, in one run.

`python -m bench --against /path/to/other/.venv/bin/python`; the other checkout has its modules compiled, too. The
clients are this checkout's. A ratio below 1 is a gain.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Final

from trouter.load.led import Led
from trouter.load.plan import Load

from .chapters import KILO, LINE_RATES, ROWS, Bench, routers_in_line
from .managing import start_s
from .measure import Sample, Spread, handshakes, pair, pair_across, ratios
from .servers import Router

NOW: Final = "this"
THEN: Final = "other"


def compare(bench: Bench, python: str) -> None:
    """Measure loads, two routers in line, handshakes, memory and start, here and in the environment of ``python``."""
    programs = {NOW: sys.executable, THEN: python}
    with ExitStack() as stack:
        routers = {
            name: stack.enter_context(Router(bench.new_folder("router"), python=program))
            for name, program in programs.items()
        }
        for row in ROWS:
            if row.quick or bench.extent.everything:
                load = replace(row.load, seconds=bench.extent.seconds)
                relate(bench, row.name, {name: partial(pair, router, load) for name, router in routers.items()})
        relate(
            bench,
            "handshakes",
            {name: partial(handshakes, each, bench.extent.seconds) for name, each in routers.items()},
        )
    with ExitStack() as stack:
        lines = {name: stack.enter_context(routers_in_line(bench, program)) for name, program in programs.items()}
        for row, rate in zip(ROWS[:3], LINE_RATES, strict=True):
            load = replace(row.load, count=int(rate * bench.extent.seconds))
            relate(
                bench,
                f"{row.name}, two routers",
                {name: partial(pair_across, *ends, load) for name, ends in lines.items()},
            )
    for name, grown in idle(bench, programs).items():
        bench.figure(f"idle connection with session and link, {name}: memory", grown, "kB")
    for name, took in starts(bench, programs).items():
        bench.figure(f"start to ready, {name}", took, "s")


def relate(bench: Bench, row: str, subjects: dict[str, Callable[[], Sample]]) -> None:
    """Measure a row on both, and report the ratio of the CPU for a message."""
    samples = bench.interleave(row, subjects)
    bench.figure(f"{row}: CPU, this to the other", ratios(samples[NOW], samples[THEN]), "x", 1.03)


def idle(bench: Bench, programs: dict[str, str]) -> dict[str, Spread]:
    """Return the resident memory of an idle connection with session and link, in kB."""
    count, grown = bench.extent.connections, {name: list[float]() for name in programs}
    for _ in range(bench.extent.repetitions):
        for name, program in programs.items():
            with Router(bench.new_folder("router"), python=program) as router:
                pair(router, Load(count=1))
                before = router.memory("VmRSS")
                with Led("hold", Load(port=router.port, connections=count, addresses=count, credit=10)) as held:
                    held.ready()
                    grown[name].append((router.memory("VmRSS") - before) / count / KILO)
                    held.send_go()
    return {name: Spread.of(values) for name, values in grown.items()}


def starts(bench: Bench, programs: dict[str, str]) -> dict[str, Spread]:
    """Return the seconds from the start of the process to its ready port."""
    took = {name: list[float]() for name in programs}
    for _ in range(4 * bench.extent.repetitions):
        for name, program in programs.items():
            took[name].append(start_s(bench.new_folder("start"), program))
    return {name: Spread.of(values) for name, values in took.items()}
