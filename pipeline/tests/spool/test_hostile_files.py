"""Files in a spool's folder that are no files of a spool: its reader and writer name them, and wait for none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pipeline.tests.spool.support import fill
from tests.routers import DEADLINE_S
from trouter_pipeline.spool import Spool

pytestmark = pytest.mark.attack

#: Reads a spool with little memory, and prints the error.
READ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from trouter_pipeline.spool import Spool, SpoolReader
try:
    if sys.argv[2] == "write":
        Spool.open(sys.argv[1]).close()
    else:
        reader = SpoolReader(sys.argv[1])
        print(sum(count for _, count in reader.blocks(0, reader.durable())))
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""
NO_FILE = "it is no regular file"


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 << 30)


def link(path: Path) -> None:
    path.symlink_to("/dev/zero")


def cut(path: Path, octets: bytes) -> None:
    path.write_bytes(octets)


#: What is put in place of which file, and what the reader and the writer say.
HOSTILE: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "pipe as a segment": ("0000000000000000.spool", os.mkfifo, NO_FILE),
    "device as a segment": ("0000000000000000.spool", link, NO_FILE),
    "sparse segment": ("0000000000000000.spool", sparse, "SpoolCorrupt: "),
    "segment cut in its header": ("0000000000000000.spool", partial(cut, octets=b"trspool\n"), "SpoolCorrupt: "),
    "pipe as a description": ("spool.json", os.mkfifo, NO_FILE),
    "sparse description": ("spool.json", sparse, "SpoolCorrupt: "),
    "pipe as a mark": ("durable", os.mkfifo, NO_FILE),
    "sparse mark": ("durable", sparse, "a mark has"),
}


@pytest.mark.parametrize("act", ["read", "write"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_an_error_that_names_it(folder: Path, kind: str, act: str) -> None:
    with Spool.open(folder, address="orders") as spool:
        fill(spool, 5)
    name, make, told = HOSTILE[kind]
    path = folder / name
    path.unlink()
    make(path)
    command = [sys.executable, "-c", READ, str(folder), act]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    assert told in done.stdout
    assert name in done.stdout
