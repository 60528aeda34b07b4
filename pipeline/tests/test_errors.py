"""What `trouter pipeline` says on stderr begins with the name of the command, whichever fails, and how."""

from __future__ import annotations

import argparse
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.tests.generate import HOUR, START, Ledger, Scribe, traffic
from trouter.cli import main
from trouter_pipeline.commands.answers import reported

pytestmark = pytest.mark.one_twin

FAILING = (
    "meter none --engine duckdb",
    "meter . --engine duckdb",
    "vacuum none",
    "report none",
    "report . -c none.conf",
    "report . --out none/r.html",
    "prune none --before 2026-01-01",
    "prune . --before 2026-01-01 --table none",
    "compact none root",
    "audit . --follow none --checkpoint c",
    "publish . --dry-run",
    "publish . --on all",
    "publish . --dry-run --on all",
    "pack none/workers.zip",
)


@pytest.mark.parametrize("words", FAILING)
def test_every_line_begins_with_the_name_of_the_command(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    action = words.partition(" ")[0]
    assert main(["pipeline", *words.split()]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert not [line for line in lines if not line.startswith(f"trouter pipeline {action}: ")]


def test_an_error_begins_a_line_behind_progress_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scribe = Scribe(tmp_path / "in", "R", START)
    scribe.write_all(
        traffic(Ledger("R", scribe.boot), seed=1, begin=START, end=START + HOUR, connections=2, prefix="t")
    )
    scribe.stop()
    assert main(["pipeline", "compact", str(tmp_path / "in"), str(tmp_path / "root"), "--jobs", "1"]) == 0
    for path in tmp_path.rglob("root/records/record=delivery.interval/**/*.parquet"):
        path.write_bytes(b"PAR1 is all PAR1")
    capsys.readouterr()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["pipeline", "meter", str(tmp_path / "root"), "--engine", "duckdb"]) == 1
    *_, error, end = capsys.readouterr().err.split("\n")
    assert error.startswith("trouter pipeline meter: ")
    assert end == ""


KILLED = """
import argparse, os, signal, sys
from pathlib import Path
from trouter_pipeline.commands.answers import reported
from trouter_pipeline.session import session
java = session("killed", master="local[1]").sparkContext._jvm.java.lang.ProcessHandle.current().pid()
def lose() -> int:
    os.kill(java, signal.SIGKILL)
    return open("none").fileno()
def fail() -> int:
    return open("none").fileno()
arguments = argparse.Namespace(command_parser=argparse.ArgumentParser(prog="a command"))
try:
    reported(arguments, lose)
except FileNotFoundError:
    sys.exit(40 + reported(arguments, fail))
"""


@pytest.mark.pipeline_long
def test_an_error_after_the_one_that_java_died_of_is_reported(tmp_path: Path) -> None:
    words = [sys.executable, "-c", KILLED]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 41, done.stderr
    assert "a command: none: No such file" in done.stderr


def test_a_reader_of_our_output_that_has_gone_is_no_failure_of_a_table() -> None:
    def write() -> int:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    with pytest.raises(BrokenPipeError):
        reported(argparse.Namespace(), write)
