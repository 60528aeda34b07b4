"""The project's fuzz targets: `python fuzz/run.py codec --seconds 60` runs one, without a name it runs all.

A target is a module in this folder; trouter.testing.fuzz.target documents its attributes. The runner stores an input
that fails in `seeds/TARGET/` as `crash-...`; tests/fuzz replays it in each later run, and `--pack` moves it to the
other seeds in `seeds/TARGET.zip`. If a folder with the inputs of other projects (`../shared/corpus`, or the folder that
TROUTER_FUZZ_CORPUS names) exists, the runner tries these too.
"""

from __future__ import annotations

import importlib
import os
import sys
import tarfile
from functools import cache
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
SEEDS: Final = HERE / "seeds"
#: Per target: an archive of another project's fuzzer, and the bytes to put before each of its inputs.
CORPUS: Final = {
    "decoding": ("proton-message-decode.tar.gz", b""),
    "message": ("proton-message-decode.tar.gz", b""),
    "sections": ("proton-message-decode.tar.gz", b"\3"),
    "values": ("proton-message-decode.tar.gz", b""),
    "engine": ("proton-connection-driver.tar.gz", b"\1\0"),
    "framing": ("proton-connection-driver.tar.gz", b"\0"),
    "routing": ("proton-connection-driver.tar.gz", b"\0"),
    "twins": ("proton-connection-driver.tar.gz", b"\1\0"),
}

if str(HERE.parent) not in sys.path:
    sys.path.append(str(HERE.parent))  # behind PYTHONPATH, which may name other compiled modules

from trouter.testing.fuzz.command import parser_of, run  # noqa: E402
from trouter.testing.fuzz.target import FuzzTarget, target_of  # noqa: E402


def targets() -> list[str]:
    """Return the names of all targets, sorted."""
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem != "run")


def corpus_folder() -> Path | None:
    """Return the folder of other projects' inputs, or None if it does not exist."""
    named = os.environ.get("TROUTER_FUZZ_CORPUS")
    places = [Path(named)] if named else [HERE.parents[1] / "shared" / "corpus", HERE.parents[2] / "shared" / "corpus"]
    return next((place for place in places if place.is_dir()), None)


@cache
def inputs_of(archive: str) -> tuple[bytes, ...]:
    """Return the inputs of an archive in the corpus; none if the archive does not exist."""
    folder = corpus_folder()
    if folder is None or not (folder / archive).is_file():
        return ()
    with tarfile.open(folder / archive) as tar:
        opened = [tar.extractfile(member) for member in tar.getmembers() if member.isfile()]
        return tuple(file.read() for file in opened if file is not None)


def load(target: str) -> FuzzTarget:
    """Return the target of this name."""
    archive, head = CORPUS.get(target, ("", b""))
    borrowed = [head + data for data in inputs_of(archive)] if archive else []
    return target_of(importlib.import_module(f"fuzz.{target}"), target, SEEDS, borrowed)


def main() -> int:
    parser = parser_of(targets())
    options = parser.parse_args()
    names = options.target or targets()
    if corpus_folder() is None:
        print("fuzz: no corpus of other projects here; only the seeds of this one are tried")
    return run([load(name) for name in names], options)


if __name__ == "__main__":
    sys.exit(main())
