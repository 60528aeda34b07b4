"""Fuzz targets for hours: in slices, in several processes, with totals in a file that later runs continue.

Each slice is a process, so that a target that hangs or dies harms no other. The file is written after each slice, so a
stopped run loses only the slices under way.
"""

from __future__ import annotations

import json
import math
import os
import random
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import trio

#: Longest slice of a target in seconds; then the next target has its turn.
SLICE_S: Final = 60.0
#: Seconds of processor time beyond the slice, in which a process also tries the seeds; after them it counts as hanging.
GRACE_S: Final = 120.0
#: A process that waits counts as hanging too: even on a busy machine others get more than this share of a core.
_LEAST_SHARE: Final = 0.02
#: Seconds of looking for inputs that reach further than the seeds, once a target has had its time.
GROW_S: Final = 60.0


@dataclass(slots=True)
class Total:
    """The results of one target in all runs with the same file; a finding resets its time and executions."""

    seconds: float = 0.0
    executions: int = 0
    new_seeds: int = 0
    #: Names of kept inputs that failed, and statuses of processes that died.
    findings: list[str] = field(default_factory=list)
    coverage: str = ""


def read_totals(path: Path) -> dict[str, Total]:
    """Return the totals in a file by target, {} without the file; OSError, ValueError, TypeError."""
    if not path.exists():
        return {}
    return {name: Total(**row) for name, row in json.loads(path.read_text(encoding="utf-8")).items()}


def table(totals: Mapping[str, Total]) -> str:
    """Return the totals as a table for the manual."""
    rows = [(f"`{name}`", total) for name, total in sorted(totals.items())]
    everything = Total(
        sum(total.seconds for total in totals.values()),
        sum(total.executions for total in totals.values()),
        sum(total.new_seeds for total in totals.values()),
        [finding for total in totals.values() for finding in total.findings],
    )
    lines = ["| target | executions | minutes | new seeds | findings | lines reached |", "|---|---|---|---|---|---|"]
    for name, total in [*rows, ("all", everything)]:
        counted = f"{total.executions:,} | {total.seconds / 60:,.1f} | {total.new_seeds} | {len(total.findings)}"
        lines.append(f"| {name} | {counted} | {total.coverage} |")
    return "\n".join(lines)


class Campaign:
    """A run of targets until each has had ``seconds``, those of earlier runs with the same file included.

    ``starts`` has the command line of each target, ``covered`` the targets whose coverage can be measured; ``grow`` is
    the number of new seeds that each of these may keep at its end.
    """

    def __init__(
        self, starts: Mapping[str, Sequence[str]], covered: frozenset[str], seconds: float, path: Path | None, grow: int
    ) -> None:
        self.totals = read_totals(path) if path else {}
        self._starts = starts
        self._covered = covered
        self._seconds = seconds
        self._path = path
        self._grow = grow
        #: Number of processes that are hunting, by target.
        self._hunting: Counter[str] = Counter()
        #: Targets that have failed in this run.
        self._stopped: set[str] = set()
        self._slice_s = SLICE_S
        self.failed = False

    async def run(self, jobs: int) -> None:
        """Hunt with ``jobs`` processes at once until every target has had its time or has failed."""
        self._slice_s = min(SLICE_S, self._seconds / jobs)
        async with trio.open_nursery() as nursery:
            for _ in range(jobs):
                nursery.start_soon(self._work)

    async def _work(self) -> None:
        while (name := self._next()) is not None:
            if not await self._hunt(name):
                self._stopped.add(name)
            self._hunting[name] -= 1
            if not self._hunting[name] and name not in self._stopped:
                await self._finish(name)

    def _next(self) -> str | None:
        """Return the target with the least time, current slices included, and count a slice; None if all are done."""
        had = {
            name: self._total(name).seconds + self._hunting[name] * self._slice_s
            for name in self._starts
            if name not in self._stopped
        }
        name = min(had, key=had.__getitem__, default=None)
        if name is None or had[name] >= self._seconds:
            return None
        self._hunting[name] += 1
        return name

    def _total(self, name: str) -> Total:
        return self.totals.setdefault(name, Total())

    async def _hunt(self, name: str) -> bool:
        """Run one slice of a target; return whether the target may go on."""
        total = self._total(name)
        others_s = (self._hunting[name] - 1) * self._slice_s
        seconds = min(self._slice_s, self._seconds - total.seconds - others_s)
        rng_seed = str(random.randrange(1, 2**31))
        options = ("--json", "--seconds", str(seconds), "--rng-seed", rng_seed)
        status, printed = await self._start(name, seconds, options)
        try:
            found = json.loads(printed[-1])
        except (IndexError, ValueError):
            found = {"tried": 0, "took_s": 0.0, "kept": f"{status} with --rng-seed {rng_seed}"}
        total.seconds += found["took_s"]
        total.executions += found["tried"]
        if found["kept"]:
            total.seconds, total.executions = 0.0, 0
            total.findings = sorted({*total.findings, found["kept"]})
        self._save()
        text = f"FAILED: {found['kept']}" if found["kept"] else "no failure"
        print(
            f"fuzz {name}: {found['tried']:,} inputs, {total.seconds:,.0f} of {self._seconds:,.0f} s, {text}",
            flush=True,
        )
        self.failed = self.failed or bool(found["kept"])
        return not found["kept"]

    async def _finish(self, name: str) -> None:
        """Grow seeds and measure the coverage of a target that has had its time."""
        total = self._total(name)
        if name not in self._covered or total.seconds < self._seconds:
            return
        pure = {"TROUTER_PURE": "1"}  # only interpreted code can be traced
        grow = ("--grow", str(self._grow), "--seconds", str(GROW_S))
        grown = (await self._start(name, GROW_S, grow, pure))[1] if self._grow else []
        covered = (await self._start(name, 0, ("--coverage",), pure))[1]
        total.new_seeds += int(grown[-1].split()[1]) if grown else 0
        total.coverage = covered[-1].partition(": ")[2] if covered else "failed"
        self._save()

    async def _start(
        self, name: str, seconds: float, options: Sequence[str], environment: Mapping[str, str] = os.environ
    ) -> tuple[int, list[str]]:
        """Run the command of a target; return its exit status and the lines that it printed."""
        command = [*self._starts[name], *options, "--processor-limit", str(math.ceil(seconds + GRACE_S))]
        with trio.move_on_after((seconds + GRACE_S) / _LEAST_SHARE):
            done = await trio.run_process(command, env={**os.environ, **environment}, capture_stdout=True, check=False)
            return done.returncode, done.stdout.decode().splitlines()
        return -signal.SIGKILL, []

    def _save(self) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            rows = {name: asdict(total) for name, total in sorted(self.totals.items())}
            written = self._path.with_name(self._path.name + ".new")
            written.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
            written.replace(self._path)
