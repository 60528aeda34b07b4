"""What the seeds of every target reach, as a table of docs/fuzzing.md: `make fuzz-coverage`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from fuzz import run
from trouter.testing.fuzz.guided import guiding

PAGE: Final = run.HERE.parent / "docs" / "fuzzing.md"
COUNTED: Final = run.HERE.parent / "build" / "counted" / "lib"
BEGIN, END = "<!-- coverage -->\n", "<!-- end of coverage -->\n"
HEAD: Final = "| target | executions a second | lines, interpreted | edges, compiled |\n|---|---|---|---|\n"
#: Seconds of processor time for the executions a second.
SPEED_S: Final = 1.0


def ask(*options: str, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the lines that the command prints, for each target one; it tries the project's own seeds only."""
    command = [sys.executable, str(run.HERE / "run.py"), *run.targets(), *options]
    environment = {**environment, "TROUTER_FUZZ_CORPUS": "/nowhere"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if not line.startswith("fuzz: ")][: len(run.targets())]


def table(counted: Path) -> str:
    """Return the table: the speed of each target on the compiled twin, and what its seeds reach on both twins."""
    with ThreadPoolExecutor(3) as pool:
        speeds = pool.submit(ask, "--json", "--seconds", str(SPEED_S))
        lines = pool.submit(ask, "--coverage", "--executions", "0", environment={**os.environ, "TROUTER_PURE": "1"})
        edges = pool.submit(ask, "--edges", environment=guiding(counted, run.HERE.parent))
    rows = zip(run.targets(), map(json.loads, speeds.result()), lines.result(), edges.result(), strict=True)
    return HEAD + "".join(
        f"| `{name}` | {found['tried'] / found['took_s']:,.0f} | {shown(line)} | {shown(edge)} |\n"
        for name, found, line, edge in rows
    )


def shown(found: str) -> str:
    """Return "12 of 34" of a line of the command, "" if the target covers nothing of the kind."""
    words = found.partition(": ")[2].split()
    return " ".join(words[:3]) if words[1:2] == ["of"] and words[2] != "0" else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counted", type=Path, default=COUNTED, help="the modules that clang compiled with counters")
    options = parser.parse_args()
    written = table(options.counted)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(before + BEGIN + written + END + rest.partition(END)[2], encoding="utf-8")
    print(written, end="")


if __name__ == "__main__":
    main()
