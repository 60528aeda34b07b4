"""Progress is shown on terminals alone, by tools that take long."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.records.written import at, opened, taken
from trouter.cli import main
from trouter.tools.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watched(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make standard error a terminal; called in the test itself, before which pytest sets up its own."""
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    return shown


def test_a_terminal_sees_how_far_a_work_is(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch)
    with progress("sending", 4) as advance:
        advance(1)
    assert "sending:   0%" in terminal.getvalue()
    assert "0/4" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r")
    with progress("reading", None, "B") as advance:
        advance(2048)
    assert "reading: 0.00B" in terminal.getvalue()


def test_no_progress_is_shown_without_a_terminal_or_with_quiet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = watched(monkeypatch)
    with progress("sending", 4, quiet=True) as advance:
        advance(4)
    assert terminal.getvalue() == ""
    log = io.StringIO()
    monkeypatch.setattr("sys.stderr", log)
    with progress("sending", 4) as advance:
        advance(4)
    assert log.getvalue() == ""


def test_records_check_and_bench_show_theirs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    terminal = watched(monkeypatch)
    writer = opened(tmp_path)
    writer.write(taken(3), at(1))
    writer.close(at(2))
    assert main(["records", "check", str(tmp_path)]) == 0
    assert "0/1" in terminal.getvalue()
    assert main(["bench", "handshakes", "--count", "1", "--port", "1"]) == 1
    assert "bench handshakes" in terminal.getvalue()
