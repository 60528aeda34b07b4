"""Instructions of the router for a message, counted by valgrind, and those that are written down.

`make instructions` counts and writes them down: `python -m tests.cost.counting`. The count is the same in every run, on
every machine of a kind. Another build of the same Python changes it by up to 5 % (3.11.2 as Debian builds it, beside
3.11.7 with the defaults of its sources); another version of Python has figures of its own.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.cost.rounds import CASES, COUNTED

ROOT: Final = Path(__file__).resolve().parents[2]
#: By machine and Python, the instructions of each case for a message.
WRITTEN: Final = Path(__file__).with_name("instructions.json")
#: The kind of machine and Python whose figures can be compared.
HERE: Final = f"{platform.machine()} {platform.python_implementation()} {sys.version_info[0]}.{sys.version_info[1]}"


def counted() -> dict[str, int]:
    """Return the instructions for a message of each case."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        report = folder / "report"
        command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={folder}/%p"]
        subprocess.run(
            [*command, sys.executable, "-m", "tests.cost.rounds", str(report)],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": "0"},
            capture_output=True,
            check=True,
        )
        lines = (line.split(" ", 1) for line in report.read_text(encoding="utf-8").splitlines())
        totals = {case: _total(folder / process) for process, case in lines}
    start = totals.pop("nothing")
    return {case: (total - start) // (COUNTED * CASES[case].messages) for case, total in totals.items()}


def _total(path: Path) -> int:
    """Return the instructions of one process."""
    (line,) = (line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("summary:"))
    return int(line.split()[1])


def written() -> dict[str, int]:
    """Return the figures that are written down for this kind of machine; empty if there are none."""
    figures: dict[str, dict[str, int]] = json.loads(WRITTEN.read_text(encoding="utf-8")) if WRITTEN.exists() else {}
    return figures.get(HERE, {})


def main() -> None:
    figures = json.loads(WRITTEN.read_text(encoding="utf-8")) if WRITTEN.exists() else {}
    figures[HERE] = counted()
    WRITTEN.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(figures[HERE], indent=2) + "\n")


if __name__ == "__main__":
    main()
