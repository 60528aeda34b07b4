"""The script for spark-submit: ``spark-submit [its options] FILE ACTION ...`` runs `trouter pipeline ACTION ...`.

`trouter pipeline doctor --submit` prints the path of this file. Python puts the folder of a script first on its path;
modules of this folder would hide other packages of the same name.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> int:
    """Run one action of the pipeline; return the exit status."""
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != here]
    try:
        from trouter.cli import main as trouter  # noqa: PLC0415  # after the path is right
    except ModuleNotFoundError as error:
        print(f"{sys.executable}: {error}: set PYSPARK_PYTHON to a Python that has trouter[spark]", file=sys.stderr)
        return 1

    return trouter(["pipeline", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
