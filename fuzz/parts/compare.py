"""Which fuzzer finds a planted bug, and after how much processor time: `make fuzz-compare`.

Each bug of `tests/planted/bugs.py` that a target reaches is planted in a copy of the sources. Each fuzzer hunts it
from the same seeds, on the interpreted twin, which atheris sees into without a second compiler. Three fuzzers: ours;
atheris with the changes of libFuzzer alone; atheris with our mutators for half of its changes, as `--guided` runs it.
A hunt ends with a finding, or when its process has used the given processor time, of which its start is a part.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.planted.bugs import BUGS, Bug
from tests.planted.run import Copy

#: What the harness of a target ends with, and what makes it one of libFuzzer alone.
_OUR_CHANGES: Final = ', **custom_mutators(getattr(target, "MUTATOR", None))'
#: In the copy: makes harness and corpus for the target that the first argument names, in the folder of the second.
_PREPARE: Final = """
import sys
from pathlib import Path
from fuzz.run import load
from trouter.testing.fuzz.guided import write_harness
target, folder = load(sys.argv[1]), Path(sys.argv[2])
print(write_harness(target, folder))
for number, seed in enumerate(target.seeds):
    (folder / "seeds").mkdir(exist_ok=True)
    (folder / "seeds" / f"{number:04}").write_bytes(seed)
"""
_UNITS: Final = re.compile(rb"stat::number_of_executed_units:\s*(\d+)|^#(\d+)\s", re.MULTILINE)


class Hunt(NamedTuple):
    """What one fuzzer did: whether it found the bug, how many inputs it tried, and its seconds of processor time."""

    found: bool
    inputs: int
    seconds: float


class Place(NamedTuple):
    """A copy with a bug, one of its targets, and how long and from which number a fuzzer hunts."""

    copy: Copy
    target: str
    seconds: float
    rng_seed: int


def _hunt(place: Place, words: Sequence[str], tried: Callable[[bytes], int]) -> Hunt:
    """Run a fuzzer until it finds something or its processor time is over."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    limit = int(place.seconds)
    environment = {**os.environ, "TROUTER_PURE": "1", "TROUTER_FUZZ_CORPUS": "/nowhere"}
    environment["PYTHONPATH"] = os.pathsep.join([str(place.copy.folder), str(place.copy.folder / "pipeline" / "src")])
    done = subprocess.run(
        ["sh", "-c", f'ulimit -t {limit}; exec "$@"', "sh", sys.executable, *words],
        cwd=place.copy.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Hunt(done.returncode > 0, tried(done.stdout), used)


def ours(place: Place) -> Hunt:
    """Hunt with our fuzzer."""
    words = [
        "fuzz/run.py",
        place.target,
        "--json",
        "--seconds",
        str(place.seconds + 9),
        "--rng-seed",
        str(place.rng_seed),
    ]

    def tried(printed: bytes) -> int:
        found = re.findall(rb'"tried": (\d+)', printed)
        return int(found[-1]) if found else 0

    return _hunt(place, words, tried)


def _guided(place: Place, *, our_changes: bool) -> Hunt:
    with tempfile.TemporaryDirectory(prefix="compare-") as name:
        _, printed, _ = place.copy.run("-c", _PREPARE, place.target, name)
        harness = Path(printed.split()[-1])
        if not our_changes:
            text = harness.read_text(encoding="utf-8")
            if _OUR_CHANGES not in text:
                raise LookupError(f"{harness} has not {_OUR_CHANGES!r}")
            harness.write_text(text.replace(_OUR_CHANGES, ""), encoding="utf-8")
        words = [
            str(harness),
            "-max_len=4096",
            f"-seed={place.rng_seed}",
            "-print_final_stats=1",
            f"-artifact_prefix={name}/",
        ]
        if (dictionary := harness.with_suffix(".dict")).exists():
            words.append(f"-dict={dictionary}")

        def tried(printed: bytes) -> int:
            return max((int(stat or line) for stat, line in _UNITS.findall(printed)), default=0)

        return _hunt(place, [*words, f"{name}/seeds"], tried)


def atheris_alone(place: Place) -> Hunt:
    """Hunt with atheris, and the changes of libFuzzer."""
    return _guided(place, our_changes=False)


def atheris_with_ours(place: Place) -> Hunt:
    """Hunt with atheris, and our mutators for half of its changes."""
    return _guided(place, our_changes=True)


FUZZERS: Final = {"our fuzzer": ours, "atheris": atheris_alone, "atheris with our mutators": atheris_with_ours}


def cell(hunts: Sequence[Hunt]) -> str:
    """Return the median of the hunts that found the bug, and how many did."""
    found = [hunt for hunt in hunts if hunt.found]
    if not found:
        return "not found"
    inputs = statistics.median(hunt.inputs for hunt in found)
    seconds = statistics.median(hunt.seconds for hunt in found)
    share = "" if len(found) == len(hunts) else f", in {len(found)} of {len(hunts)}"
    return f"{inputs:,.0f} inputs, {seconds:.1f} s{share}"


def compare(copy: Copy, bug: Bug, target: str, seconds: float, runs: int) -> str:
    """Plant a bug, let every fuzzer hunt it, and return the row of the table."""
    path = copy.folder / bug.file
    source = path.read_text(encoding="utf-8")
    path.write_text(source.replace(bug.old, bug.new), encoding="utf-8")
    seeds = copy.folder / "fuzz" / "seeds" / target
    kept = {*seeds.glob("crash-*")}
    try:
        cells = []
        for fuzzer in FUZZERS.values():
            hunts = []
            for rng_seed in range(1, runs + 1):
                hunts.append(fuzzer(Place(copy, target, seconds, rng_seed)))
                for crash in {*seeds.glob("crash-*")} - kept:
                    crash.unlink()  # so that the next hunt has the same seeds
            cells.append(cell(hunts))
    finally:
        path.write_text(source, encoding="utf-8")
    return f"| {bug.what} | `{target}` | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="*", help="only the bugs that these targets reach")
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time for each hunt (default: 60)")
    parser.add_argument("--runs", type=int, default=3, help="hunts of each fuzzer, from different numbers (default: 3)")
    options = parser.parse_args()
    print(f"| bug | target | {' | '.join(FUZZERS)} |\n|---|---|{'---|' * len(FUZZERS)}")
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        copy = Copy(Path(folder, "copy"))
        for bug in BUGS:
            for target in (
                bug.targets[:1] if not options.target else [each for each in bug.targets if each in options.target]
            ):
                print(compare(copy, bug, target, options.seconds, options.runs), flush=True)


if __name__ == "__main__":
    main()
