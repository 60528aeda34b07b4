"""`python -m bench`: run the chapters, print the tables, write JSON and a picture."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from trouter import _twin
from trouter.load.fleet import raise_descriptor_limit
from trouter.load.plan import LoadError

from . import environment, plot, table
from .against import compare
from .chapters import CHAPTERS, Bench
from .plan import FULL, QUICK
from .results import Results
from .servers import ServerError

OUT: Final = Path(__file__).parent / "out"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure the router's CPU per message against HAProxy's copying of the same bytes, in one run.",
        epilog="docs/benchmarks.md explains what is measured and how to read it.",
    )
    parser.add_argument("--quick", action="store_true", help="about two minutes in place of a quarter of an hour")
    parser.add_argument("--only", nargs="+", choices=CHAPTERS, metavar="CHAPTER", help=f"of: {', '.join(CHAPTERS)}")
    parser.add_argument(
        "--against",
        metavar="PYTHON",
        help="compare with the router of another environment instead: the Python in its .venv",
    )
    parser.add_argument("--repetitions", type=int, metavar="N", help="of each run (full 5, quick 3)")
    parser.add_argument("--seconds", type=float, metavar="S", help="of each run (full 1.5, quick 0.4)")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FOLDER", help="for bench.json, bench.png, bench.svg")
    parser.add_argument("--into", type=Path, metavar="PAGE", help="put the tables between the marks of a page, too")
    return parser.parse_args()


def main() -> int:
    """Return 0 when everything requested was measured, whether or not the figures are met."""
    asked = arguments()
    if _twin.running() == "interpreted":
        print("bench: the compiled twin is needed, this one is interpreted; try `make bench`", file=sys.stderr)
        return 1
    if shutil.which("haproxy") is None:
        print("bench: haproxy is needed (Debian: haproxy)", file=sys.stderr)
        return 1
    raise_descriptor_limit()
    extent = QUICK if asked.quick else FULL
    repetitions = asked.repetitions or extent.repetitions
    seconds = asked.seconds or extent.seconds
    results = Results({**environment.describe(), "extent": extent.name, "repetitions": repetitions, "seconds": seconds})
    with tempfile.TemporaryDirectory(prefix="trouter-bench-") as folder:
        extent = replace(extent, repetitions=repetitions, seconds=seconds)
        bench = Bench(extent, Path(folder), results, progress)
        if asked.against is None:
            complete = run(bench, {name: CHAPTERS[name] for name in asked.only or CHAPTERS})
        else:
            complete = run(bench, {"against": partial(compare, python=asked.against)})
    text = table.render(results)
    print(text)
    leave(results, asked.out)
    if asked.into is not None:
        table.put_into(asked.into, text)
    return 0 if complete else 1


def run(bench: Bench, chapters: Mapping[str, Callable[[Bench], None]]) -> bool:
    """Run the chapters one after the other; return False if one of them failed."""
    complete = True
    for name, chapter in chapters.items():
        bench.say(f"{name}:")
        try:
            chapter(bench)
        except (LoadError, ServerError) as error:
            bench.remark(f"{name}: not finished: {error}")
            complete = False
    return complete


def leave(results: Results, folder: Path) -> None:
    """Write the files of the results."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "bench.json"]
    written[0].write_text(json.dumps(results.to_dict(), indent=1) + "\n")
    try:
        written += plot.draw(results, folder)
    except ImportError:
        progress("no picture: matplotlib is not installed")
    progress(f"written: {', '.join(str(path) for path in written)}")


_BEGAN_S: Final = time.monotonic()


def progress(text: str) -> None:
    """Print progress on standard error, apart from the results."""
    print(f"[{time.monotonic() - _BEGAN_S:6.1f} s] {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
