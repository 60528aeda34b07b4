"""The command under the names of the older router's programs, as an installer would put it on the path."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Only a hang takes this long; no test waits for it.
TOO_LONG_S = 120


def installed(folder: Path, name: str) -> Path:
    """A program of this name."""
    program = folder / name
    program.write_text(f"#!{sys.executable}\nimport sys\nfrom trouter.cli import main\nsys.exit(main())\n")
    program.chmod(0o755)
    return program


def called(
    program: Path,
    *arguments: str | Path,
    given: str = "",
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """What became of a call."""
    variables = {"COLUMNS": "100", "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}", **(environment or {})}
    return subprocess.run(
        [program, *arguments],
        cwd=cwd,
        env=os.environ | variables,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=TOO_LONG_S,
    )
