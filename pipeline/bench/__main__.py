"""`python -m pipeline.bench`: run the chapters, print the tables, write JSON."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench import environment, table
from bench.__main__ import OUT, progress
from bench.chapters import Bench
from bench.plan import FULL, QUICK
from bench.results import Results
from trouter import _twin

from . import alerting, landing, merging, metering, receiving, rows, sending
from .processes import MeasureError

#: Each chapter measures into the results; a new chapter is a line here.
CHAPTERS: Final[dict[str, Callable[[Bench], None]]] = {
    "receive": receiving.receive_to_spool,
    "shards": receiving.shards,
    "rows": rows.rows,
    "sink": sending.sink,
    "landed": landing.landed,
    "merge": merging.merge,
    "alerts": alerting.alerts,
    "meter": metering.meter,
    "large": metering.large,
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m pipeline.bench",
        description="Measure the pipeline against the same written with python-qpid-proton, in one run.",
    )
    parser.add_argument("--quick", action="store_true", help="a few minutes less")
    parser.add_argument("--only", nargs="+", choices=CHAPTERS, metavar="CHAPTER", help=f"of: {', '.join(CHAPTERS)}")
    parser.add_argument("--repetitions", type=int, metavar="N", help="of each run (full 5, quick 3)")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FOLDER", help="for bench-pipeline.json")
    parser.add_argument("--spools", type=Path, metavar="FOLDER", help="where spools are made")
    return parser.parse_args()


def main() -> int:
    """Return 0 when everything requested was measured, whether or not the figures are met."""
    asked = arguments()
    if _twin.running() != "compiled":
        print("bench: the compiled twin is needed; try `make bench-pipeline`", file=sys.stderr)
        return 1
    extent = QUICK if asked.quick else FULL
    extent = replace(extent, repetitions=asked.repetitions or extent.repetitions)
    results = Results(
        {
            **environment.describe(),
            "extent": extent.name,
            "repetitions": extent.repetitions,
            "seconds": "as long as it takes",
        }
    )
    complete = True
    with tempfile.TemporaryDirectory(prefix="trouter-bench-", dir=asked.spools) as folder:
        bench = Bench(extent, Path(folder), results, progress)
        for name in asked.only or CHAPTERS:
            bench.say(f"{name}:")
            try:
                CHAPTERS[name](bench)
            except MeasureError as error:
                bench.remark(f"{name}: not finished: {error}")
                complete = False
    print(table.render(results))
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "bench-pipeline.json").write_text(json.dumps(results.to_dict(), indent=1) + "\n")
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
