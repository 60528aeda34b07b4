"""The command line of fuzz targets: hunt by Hypothesis or atheris, replay seeds, pack them, write harnesses."""

from __future__ import annotations

import argparse
import gc
import json
import logging
import random
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from trouter import _twin
from trouter.testing.fuzz.guided import hunt_guided, write_harness
from trouter.testing.fuzz.hunting import Found, cuts, try_one
from trouter.testing.fuzz.seeds import pack_seeds
from trouter.testing.fuzz.target import FuzzTarget, load_file

#: Beginnings of each seed that a replay tries.
REPLAY_CUTS: Final = 40
#: Objects between runs of the garbage collector: inputs leave little garbage, and a run takes as long as an input.
GARBAGE_OBJECTS: Final = 20_000
#: The status of a command that lacks a package.
LACKING: Final = 2


class TargetResult(NamedTuple):
    """What was done with a target, as a line of the table at the end."""

    name: str
    tried: int = 0
    per_second: float = 0.0
    failed: bool = False


def hunt_mutations(
    target: FuzzTarget, rng_seed: int, *, executions: int | None = None, seconds: float | None = None
) -> Found:
    """Try the seeds of a target and inputs that Hypothesis makes of them; ModuleNotFoundError without Hypothesis.

    At most so many ``executions`` in all, or for ``seconds`` of processor time.
    """
    try:
        from trouter.testing.fuzz.drawing import hunt_drawn  # noqa: PLC0415 - Hypothesis is no dependency of trouter
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            "Hypothesis is not installed: pip install hypothesis, or hunt by atheris (--guided)"
        ) from missing
    return hunt_drawn(target, rng_seed, executions=executions, seconds=seconds)


def replay(target: FuzzTarget, maximum: int = REPLAY_CUTS) -> list[tuple[str, BaseException]]:
    """Try every seed of a target whole and cut in up to ``maximum`` places; return the names of those that fail."""
    failures = []
    for name, seed in target.inputs.items():
        for data in cuts(seed, maximum):
            error = try_one(target.check, data)
            if error is not None:
                failures.append((name, error))
                break
    return failures


def parser_of(names: Sequence[str] | None) -> argparse.ArgumentParser:
    """Return the parser of the command, whose targets are ``names``, or files if that is None."""
    parser = argparse.ArgumentParser(
        description="Fuzz one target or more: by Hypothesis, or with --guided by atheris.", allow_abbrev=False
    )
    if names is None:
        parser.add_argument("target", nargs="+", type=Path, help="a Python file with a function check(data)")
    else:
        parser.add_argument("target", nargs="*", choices=[*names, []], help="all of them if none is named")
    parser.add_argument("--seeds", type=Path, help="the folder with an archive or a folder of seeds for each target")
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time for each target (default: 60)")
    parser.add_argument("--executions", type=int, help="inputs for each target, whatever time they take")
    parser.add_argument("--rng-seed", type=int, default=random.randrange(1, 2**31), help="to try the same inputs again")
    parser.add_argument("--guided", action="store_true", help="with atheris, which keeps inputs that reach new code")
    parser.add_argument("--counted", type=Path, metavar="FOLDER", help="with --guided: modules compiled with counters")
    parser.add_argument("--replay", action="store_true", help="only try the seeds, whole and cut")
    parser.add_argument("--pack", action="store_true", help="only move new seeds into the archive of the target")
    parser.add_argument("--harness", type=Path, metavar="FOLDER", help="only write what OSS-Fuzz takes for each target")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)  # what tests/planted reads
    return parser


def run(targets: Iterable[FuzzTarget], options: argparse.Namespace) -> int:
    """Do what the options say with each target; return the exit status."""
    logging.disable()  # the log is full of refused inputs
    gc.set_threshold(GARBAGE_OBJECTS)
    try:
        rows = [_run_one(target, options) for target in targets]
    except ModuleNotFoundError as missing:
        print(f"fuzz: {missing}", file=sys.stderr)
        return LACKING
    if len(rows) > 1:
        print(f"\n{'target':<16} {'inputs':>10} {'a second':>9}")
        for row in rows:
            print(f"{row.name:<16} {row.tried:>10,} {row.per_second:>9,.0f}{'  failed' if row.failed else ''}")
        print(f"{'all':<16} {sum(row.tried for row in rows):>10,}")
    return int(any(row.failed for row in rows))


def _run_one(target: FuzzTarget, options: argparse.Namespace) -> TargetResult:
    if options.pack:
        print(f"{target.name}: {pack_seeds(target.folder)} seeds packed", flush=True)
        return TargetResult(target.name)
    if options.harness:
        print(f"{target.name}: {write_harness(target, options.harness)}", flush=True)
        return TargetResult(target.name)
    if options.replay:
        return _replay(target)
    if options.guided:
        bound = f"-max_total_time={options.seconds:.0f}"
        if options.executions is not None:
            bound = f"-runs={options.executions}"
        status = hunt_guided(target, options.counted, [bound, f"-seed={options.rng_seed}"])
        return TargetResult(target.name, failed=bool(status))
    return _hunt(target, options)


def _replay(target: FuzzTarget) -> TargetResult:
    failures = replay(target)
    for name, error in failures:
        print(f"{target.name}: {name} fails: {error!r}")
    tried = len(target.inputs)
    print(f"{target.name}: {tried} seeds tried, {len(failures)} fail", flush=True)
    return TargetResult(target.name, tried, failed=bool(failures))


def _hunt(target: FuzzTarget, options: argparse.Namespace) -> TargetResult:
    if not options.json:
        begun = f"fuzz {target.name}: {len(target.seeds)} seeds, --rng-seed {options.rng_seed}, {_twin.running()}"
        print(begun, flush=True)
    seconds = None if options.executions is not None else options.seconds
    found = hunt_mutations(target, options.rng_seed, executions=options.executions, seconds=seconds)
    kept = None
    if found.error is not None and found.data is not None:
        traceback.print_exception(found.error)
        kept = target.keep(found.data)
    if options.json:
        print(json.dumps({"tried": found.tried, "took_s": found.took_s, "kept": kept.name if kept else ""}))
    elif kept:
        print(f"fuzz {target.name}: input {found.tried} failed, kept as {kept}")
    else:
        print(f"fuzz {target.name}: {found.tried} inputs, {found.per_second:,.0f} a second, no failure")
    return TargetResult(target.name, found.tried, found.per_second, failed=kept is not None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz the targets in the files that the command line names; return the exit status."""
    options = parser_of(None).parse_args(arguments)
    return run([load_file(path, options.seeds) for path in options.target], options)
