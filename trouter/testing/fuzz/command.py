"""The command line of fuzz targets: hunt, replay, coverage, and a table at the end."""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import random
import resource
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import trio

from trouter import _twin
from trouter.testing.fuzz.campaign import Campaign, table
from trouter.testing.fuzz.edges import CompiledCoverage
from trouter.testing.fuzz.guided import guiding, hunt_guided, write_harness
from trouter.testing.fuzz.hunting import Found, cuts, hunt, mutations, try_one
from trouter.testing.fuzz.lines import Coverage
from trouter.testing.fuzz.mutation import Pool, mutate
from trouter.testing.fuzz.seeds import crash_path, pack_seeds
from trouter.testing.fuzz.target import FuzzTarget, load_file

#: Mutations tried for the coverage, beside the seeds.
COVERAGE_EXECUTIONS: Final = 1000
#: Seconds after which no more mutations are tried for it.
COVERAGE_S: Final = 20.0
#: Beginnings of each seed that a replay tries.
REPLAY_CUTS: Final = 40
#: Longest grown seed, in bytes.
MAX_GROWN_BYTES: Final = 1500
#: Objects between runs of the garbage collector: inputs leave little garbage, and a run takes as long as an input.
GARBAGE_OBJECTS: Final = 20_000


def hunt_mutations(
    target: FuzzTarget, rng_seed: int, *, executions: int | None = None, seconds: float | None = None
) -> Found:
    """Try the seeds of a target and mutations of them; see ``mutations`` for the bounds."""
    inputs = mutations(random.Random(rng_seed), target.seeds, target.mutator, executions=executions, seconds=seconds)
    return hunt(target.check, inputs)


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


def measure(target: FuzzTarget, rng_seed: int, count: int = COVERAGE_EXECUTIONS) -> Coverage:
    """Return the coverage of ``covers`` by the seeds of a target and ``count`` mutations of them."""
    coverage = Coverage(target.covers)
    end_s = time.monotonic() + COVERAGE_S
    executions = len(target.seeds) + count
    for data in mutations(random.Random(rng_seed), target.seeds, target.mutator, executions=executions):
        target.watch(coverage, data)
        if time.monotonic() > end_s:
            break
    return coverage


def measure_edges(target: FuzzTarget) -> CompiledCoverage:
    """Return the edges of ``covers`` that the seeds of a target reach in modules that were compiled with counters."""
    edges = CompiledCoverage(target.covers)
    for data in target.seeds:
        target.check(data)
    return edges


def grow(target: FuzzTarget, rng_seed: int, seconds: float, maximum: int) -> list[Path]:
    """Keep up to ``maximum`` mutations that reach steps between lines that no seed reaches; return their files."""
    coverage = Coverage(target.covers)
    seeds = target.seeds
    pool = Pool(seeds)
    rng = random.Random(rng_seed)
    for data in seeds:
        target.watch(coverage, data)
    kept: list[Path] = []
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s and len(kept) < maximum:
        data = mutate(rng, pool, target.mutator)
        before = len(coverage.arcs)
        target.watch(coverage, data)
        if len(coverage.arcs) > before and len(data) <= MAX_GROWN_BYTES:
            pool.append(data)
            path = crash_path(target.folder, data)
            path = path.with_name(path.name.replace("crash-", "grown-"))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            kept.append(path)
    return kept


def parser_of(names: Sequence[str] | None) -> argparse.ArgumentParser:
    """Return the parser of the command, whose targets are ``names``, or files if that is None."""
    parser = argparse.ArgumentParser(description="Fuzz one target or more.", allow_abbrev=False)
    if names is None:
        parser.add_argument("target", nargs="+", type=Path, help="a Python file with a function check(data)")
    else:
        parser.add_argument("target", nargs="*", choices=[*names, []], help="all of them if none is named")
    parser.add_argument("--seeds", type=Path, help="the folder with an archive or a folder of seeds for each target")
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time for each target (default: 60)")
    parser.add_argument("--executions", type=int, help="inputs for each target, whatever time they take")
    parser.add_argument("--rng-seed", type=int, default=random.randrange(1, 2**31), help="to try the same inputs again")
    parser.add_argument("--replay", action="store_true", help="only try the seeds, whole and cut")
    parser.add_argument("--pack", action="store_true", help="only move new seeds into the archive of the target")
    parser.add_argument("--coverage", action="store_true", help="only print the lines reached in interpreted modules")
    parser.add_argument("--edges", action="store_true", help="only print the edges reached in modules with counters")
    parser.add_argument("--counted", type=Path, metavar="FOLDER", help="for both: hot modules compiled with counters")
    parser.add_argument("--missed", action="store_true", help="with --coverage: list the lines that are not reached")
    parser.add_argument("--grow", type=int, metavar="N", help="keep up to N inputs that reach further than the seeds")
    parser.add_argument("--jobs", type=int, help="processes at once; targets take turns, a minute each at most")
    parser.add_argument("--totals", type=Path, metavar="FILE", help="go on from what FILE says is done, and add to it")
    parser.add_argument("--guided", action="store_true", help="with atheris, which keeps inputs that reach new code")
    parser.add_argument("--harness", type=Path, metavar="FOLDER", help="only write what OSS-Fuzz takes for each target")
    parser.add_argument("--processor-limit", type=int, help=argparse.SUPPRESS)  # seconds until a slice is killed
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)  # what a slice of a campaign answers
    return parser


def run(
    targets: Iterable[FuzzTarget], options: argparse.Namespace, again: Callable[[FuzzTarget], Sequence[str]]
) -> int:
    """Do what the options say with each target; return the exit status.

    ``again`` returns a command line for a target, for processes that measure its coverage in interpreted code.
    """
    logging.disable()  # the log is full of refused inputs
    gc.set_threshold(GARBAGE_OBJECTS)
    if options.processor_limit:
        resource.setrlimit(resource.RLIMIT_CPU, (options.processor_limit, options.processor_limit))
    if options.jobs or options.totals:
        chosen = {target.name: target for target in targets}
        measured = frozenset(name for name, target in chosen.items() if target.covers)
        starts = {name: again(target) for name, target in chosen.items()}
        campaign = Campaign(starts, measured, options.seconds, options.totals, options.grow or 0)
        trio.run(campaign.run, options.jobs or 1)
        print(f"\n{table(campaign.totals)}")
        return int(campaign.failed)
    rows = [_run_one(target, options, again(target)) for target in targets]
    if len(rows) > 1:
        print(f"\n{'target':<16} {'inputs':>10} {'a second':>9}  {'coverage':<22}")
        for name, tried, rate, covered, _ in rows:
            print(f"{name:<16} {tried:>10,} {rate:>9,.0f}  {covered:<22}")
        print(f"{'all':<16} {sum(row[1] for row in rows):>10,}")
    return int(any(row[4] for row in rows))


def _run_one(
    target: FuzzTarget, options: argparse.Namespace, again: Sequence[str]
) -> tuple[str, int, float, str, bool]:
    if options.coverage:
        covered = _coverage_text(target, options)
        print(f"{target.name}: {covered}", flush=True)
        return target.name, 0, 0.0, covered, False
    if options.edges:
        covered = _edges_of_child(target, options, again) if options.counted else _edges_text(target)
        print(f"{target.name}: {covered}", flush=True)
        return target.name, 0, 0.0, covered, False
    if options.grow is not None:
        kept = grow(target, options.rng_seed, options.seconds, options.grow)
        print(f"{target.name}: {len(kept)} new seeds", flush=True)
        return target.name, 0, 0.0, "", False
    if options.pack:
        print(f"{target.name}: {pack_seeds(target.folder)} seeds packed", flush=True)
        return target.name, 0, 0.0, "", False
    if options.harness:
        print(f"{target.name}: {write_harness(target, options.harness)}", flush=True)
        return target.name, 0, 0.0, "", False
    if options.guided:
        bound = f"-max_total_time={options.seconds:.0f}"
        if options.executions is not None:
            bound = f"-runs={options.executions}"
        status = hunt_guided(target, options.counted, [bound, f"-seed={options.rng_seed}"])
        return target.name, 0, 0.0, "failed" if status else "no failure", bool(status)
    if options.replay:
        failures = replay(target)
        for name, error in failures:
            print(f"{target.name}: {name} fails: {error!r}")
        tried = len(target.inputs)
        print(f"{target.name}: {tried} seeds tried, {len(failures)} fail", flush=True)
        return target.name, tried, 0.0, "", bool(failures)
    if not options.json:
        print(
            f"fuzz {target.name}: {len(target.seeds)} seeds, --rng-seed {options.rng_seed}, {_twin.running()}",
            flush=True,
        )
    seconds = None if options.executions is not None else options.seconds
    found = hunt_mutations(target, options.rng_seed, executions=options.executions, seconds=seconds)
    if found.error is not None and found.data is not None:
        traceback.print_exception(found.error)
        path = target.keep(found.data)
        print(_json(found, path) if options.json else f"fuzz {target.name}: input {found.tried} failed, kept as {path}")
        return target.name, found.tried, found.per_second, "failed", True
    if options.json:
        print(_json(found))
        return target.name, found.tried, found.per_second, "", False
    covered = _coverage_of_child(target, options, again) if target.covers else "not measured"
    print(f"fuzz {target.name}: {found.tried} inputs, {found.per_second:,.0f} a second, no failure; {covered}")
    return target.name, found.tried, found.per_second, covered, False


def _json(found: Found, kept: Path | None = None) -> str:
    return json.dumps({"tried": found.tried, "took_s": found.took_s, "kept": kept.name if kept else ""})


def _coverage_text(target: FuzzTarget, options: argparse.Namespace) -> str:
    count = COVERAGE_EXECUTIONS if options.executions is None else options.executions
    coverage = measure(target, options.rng_seed, count)
    if options.missed:
        for path, line in coverage.missed():
            print(f"  {path}:{line}")
    total = coverage.total
    return f"{coverage.reached} of {total} lines, {100 * coverage.reached // total} %" if total else "no lines"


def _edges_text(target: FuzzTarget) -> str:
    edges = measure_edges(target)
    return f"{edges.reached} of {edges.total} edges"


def _edges_of_child(target: FuzzTarget, options: argparse.Namespace, again: Sequence[str]) -> str:
    """Return the edges that a child process with modules that count them reaches."""
    return _ask_child(target, [*again, "--edges"], guiding(options.counted, target.place))


def _coverage_of_child(target: FuzzTarget, options: argparse.Namespace, again: Sequence[str]) -> str:
    """Return the coverage of a child process, since only interpreted code can be traced."""
    command = [*again, "--coverage", "--rng-seed", str(options.rng_seed)]
    return _ask_child(target, command, {**os.environ, "TROUTER_PURE": "1"})


def _ask_child(target: FuzzTarget, command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return what a process with this command says about a target."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - this very program
    found = [line for line in done.stdout.splitlines() if line.startswith(f"{target.name}: ")]
    return found[-1].partition(": ")[2] if found else "coverage failed"


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz the targets in the files that the command line names; return the exit status."""
    options = parser_of(None).parse_args(arguments)
    files = {path.stem: path for path in options.target}
    start = [sys.executable, "-m", "trouter.testing.fuzz"]
    seeds = ["--seeds", str(options.seeds)] if options.seeds else []
    targets = [load_file(path, options.seeds) for path in files.values()]
    return run(targets, options, lambda target: [*start, str(files[target.name]), *seeds])
