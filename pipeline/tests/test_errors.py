"""What `trouter pipeline` says on stderr begins with the name of the command, whichever fails, and how."""

from __future__ import annotations

import argparse
import errno
import os
from pathlib import Path

import pytest

from trouter.cli import main
from trouter_pipeline.commands.answers import reported

FAILING = (
    "meter none --engine duckdb",
    "meter . --engine duckdb",
    "vacuum none",
    "migrate none",
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


def test_a_reader_of_our_output_that_has_gone_is_no_failure_of_a_table() -> None:
    def write() -> int:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    with pytest.raises(BrokenPipeError):
        reported(argparse.Namespace(), write)
