"""The trouter command under the names of Qpid Dispatch's programs, installed on the path."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Seconds that only a hang takes; no test waits for them to pass.
TOO_LONG_S = 120


def installed(folder: Path, name: str) -> Path:
    """Install a program of this name in ``folder``; return its path."""
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
    """Run a program to its end; return its status and output."""
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
