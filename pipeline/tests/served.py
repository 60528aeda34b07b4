"""`trouter pipeline serve` as a process of a test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.house.sources import ROOT
from trouter_pipeline.flight import protocol

TOKEN = "a-token-of-the-test"
#: Seconds that only a hang takes.
PATIENCE_S = 120.0


def serve(folder: Path, *more: str, listen: str = "127.0.0.1:0", before: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Start a server, by the words ``before`` its own if there are any."""
    words = [
        *before,
        sys.executable,
        "-m",
        "trouter",
        "pipeline",
        "serve",
        "--dir",
        str(folder),
        "--listen",
        listen,
        *more,
    ]
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def url_of(process: subprocess.Popen[str]) -> str:
    """Return the address that a server prints once it answers."""
    assert process.stderr is not None
    line = process.stderr.readline()
    assert "://" in line, line
    return line.rpartition(" ")[2].strip()


@contextmanager
def served(folder: Path, *more: str) -> Iterator[str]:
    process = serve(folder, *more)
    try:
        yield url_of(process)
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        assert process.stderr is not None
        process.stderr.close()


def signed_of(part: Any) -> protocol.SignedGrant:
    """Return the grant that a slice has for a worker."""
    signed: protocol.SignedGrant = part.granted.signed
    return signed
