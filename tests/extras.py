"""Run `trouter` as if packages of the extras were not installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

SPARKS: Final = frozenset({"pyspark", "py4j", "pandas", "fastavro", "google"})
RECORDS: Final = frozenset({"duckdb", "pyarrow", "matplotlib", "numpy"})
_PROGRAM: Final = """
import sys
from importlib import metadata
from importlib.machinery import PathFinder
HIDDEN = set(sys.argv.pop(1).split())
class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
def version(name, known=metadata.version):
    if {"protobuf": "google"}.get(name, name) in HIDDEN:
        raise metadata.PackageNotFoundError(name)
    return known(name)
metadata.version = version
from trouter.cli import main
if __name__ == "__main__":
    sys.exit(main())
"""


def run_without(packages: Iterable[str], *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in ``folder`` to its end; imports of these packages fail as if they were not installed."""
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM, " ".join(packages), *words],
        cwd=folder,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
