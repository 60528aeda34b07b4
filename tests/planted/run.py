"""Plant the bugs of the table one at a time, and report the tests and fuzz targets that detect them: `make planted`.

Each bug is planted in a copy of the sources in a temporary folder, on the interpreted twin, so that nothing is compiled
and the work tree stays unchanged. The status is 1 if the tests of a row fail without the bug or pass with it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.planted.bugs import BUGS, Bug

ROOT: Final = Path(__file__).resolve().parents[2]
COPIED: Final = (
    "trouter",
    "tests",
    "fuzz",
    "plugins",
    "policies",
    "certs",
    "examples",
    "docs",
    "bench",
    "pipeline",
    "conftest.py",
    "pyproject.toml",
)
LEFT_OUT: Final = shutil.ignore_patterns("*.so", "*.c", "__pycache__", "node_modules", ".pytest_cache")
PAGE: Final = ROOT / "docs" / "fuzzing.md"
BEGIN, END = "<!-- planted bugs -->\n", "<!-- end of planted bugs -->\n"
#: Seconds that a command may run beyond its hunt, or for all tests of a row; a hang counts as detection.
GRACE_S: Final = 300.0
FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Row:
    """The result for one bug; the texts are cells of the table, None if the tests or the targets detected nothing."""

    bug: Bug
    test: str | None
    hunted: str | None
    sound: bool

    @property
    def text(self) -> str:
        """Return the row of the table, in Markdown."""
        place = f"`{self.bug.file.removeprefix('trouter/').removeprefix('pipeline/src/')}`: {self.bug.what}"
        alone = self.hunted or ("not found" if self.bug.targets else "no target reaches it")
        return f"| {self.bug.kind} | {place} | {self.test or '**none**'} | {alone} |"


class Copy:
    """A copy of the sources in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=LEFT_OUT)
            else:
                shutil.copy(ROOT / name, folder / name)

    def run(self, *command: str, within_s: float = GRACE_S) -> tuple[int, str, float]:
        """Run Python in the copy; return the status (-9 after a hang), the output, and the seconds."""
        environment = {
            **os.environ,
            "TROUTER_PURE": "1",
            "PYTHONPATH": os.pathsep.join([str(self.folder), str(self.folder / "pipeline" / "src")]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        begun_s = time.monotonic()
        try:
            done = subprocess.run(
                [sys.executable, *command],
                cwd=self.folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=within_s,
            )
        except subprocess.TimeoutExpired:
            return -9, "", time.monotonic() - begun_s
        return done.returncode, done.stdout, time.monotonic() - begun_s

    def pytest(self, tests: tuple[str, ...]) -> tuple[int, str, float]:
        """Run tests until the first failure; return the status, the output, and the seconds."""
        base = self.folder / "pytest"
        return self.run("-m", "pytest", "-q", "-x", "--hypothesis-profile=brief", f"--basetemp={base}", *tests)

    def hunt(self, target: str, seconds: float, rng_seed: int, *bound: str) -> str | None:
        """Return the finding of a fuzz target within ``seconds`` or the options in ``bound``; None for no finding."""
        options = ("--json", "--seconds", str(seconds), "--rng-seed", str(rng_seed), *bound)
        status, printed, took_s = self.run("fuzz/run.py", target, *options, within_s=seconds + GRACE_S)
        if status == 0:
            return None
        for crash in (self.folder / "fuzz" / "seeds" / target).glob("crash-*"):
            if not (ROOT / "fuzz" / "seeds" / target / crash.name).exists():
                crash.unlink()  # so that a later bug must be found again
        last = printed.rstrip().rpartition("\n")[2]
        if not last.startswith("{"):
            return f"`{target}`: it hangs or dies, after {took_s:.0f} s"
        found = json.loads(last)
        return f"`{target}`: input {found['tried']:,}, after {found['took_s']:.1f} s"


def planted(copy: Copy, bug: Bug, seconds: float, rng_seed: int) -> Row:
    """Plant a bug, return the row with the tests and targets that detect it, and remove it from the copy again."""
    path = copy.folder / bug.file
    source = path.read_text(encoding="utf-8")
    if source.count(bug.old) != 1:
        raise LookupError(f"{bug.file} has not exactly one {bug.old!r}: the table is out of date")
    sound = copy.pytest(bug.tests)[0] == 0
    path.write_text(source.replace(bug.old, bug.new), encoding="utf-8")
    try:
        status, printed, took_s = copy.pytest(bug.tests)
        names = FAILED.findall(printed)
        test = None
        if status:
            test = f"`{names[0]}`, {took_s:.1f} s" if names else f"it hangs or dies, after {took_s:.0f} s"
        hunts = (copy.hunt(target, seconds, rng_seed) for target in bug.targets)
        hunted = next((found for found in hunts if found), None)
    finally:
        path.write_text(source, encoding="utf-8")
    if hunted and (tried := re.search(r"`(\w+)`: input ([\d,]+)", hunted)):
        sound = sound and not copy.hunt(tried[1], seconds, rng_seed, "--executions", tried[2].replace(",", ""))
    row = Row(bug, test, hunted, sound)
    print(row.text + ("" if sound else " SOMETHING FAILS WITHOUT THE BUG"), flush=True)
    return row


def table(rows: list[Row]) -> str:
    """Return the table of the manual."""
    head = (
        "| bug | where | first test that fails, with the start of pytest | a fuzz target alone |\n|---|---|---|---|\n"
    )
    return head + "".join(f"{row.text}\n" for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", nargs="*", help="plant only the bugs whose kind or file has one of these words in it")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each fuzz target (default: 60)")
    parser.add_argument("--rng-seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="copies in which bugs are planted at the same time")
    parser.add_argument("--page", action="store_true", help="write the table into docs/fuzzing.md")
    options = parser.parse_args()
    chosen = [bug for bug in BUGS if not options.word or any(w in bug.kind + bug.file for w in options.word)]
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(options.jobs):
            copies.put(Copy(Path(folder, str(number))))

        def plant(bug: Bug) -> Row:
            copy = copies.get()
            try:
                return planted(copy, bug, options.seconds, options.rng_seed)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(options.jobs) as pool:
            rows = list(pool.map(plant, chosen))
    if options.page:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(before + BEGIN + table(rows) + END + rest.partition(END)[2], encoding="utf-8")
    missed = [row for row in rows if row.test is None or not row.sound]
    print(f"planted: {len(rows)} bugs, {len(rows) - len(missed)} noticed by tests that pass without them")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
