"""Every command exits with 0 for success, 1 for problems and 2 for wrong usage, and writes errors to stderr only."""

from __future__ import annotations

import argparse
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.extras import RECORDS, SPARKS, run_without
from trouter.cli import main, parser

#: Input with which each command fails: a bad or missing file, or an unreachable router.
UNUSABLE = {
    "run": "-c none",
    "init": "none/trouter.conf",
    "check": "none",
    "migrate": "none",
    "stat": "-b BUS",
    "stat -g": "--json -b BUS",
    "stat --all-routers": "--json -b BUS",
    "manage query": "-b BUS",
    "send": "address body -b BUS -q",
    "receive": "address -b BUS -q",
    "request": "address body -b BUS",
    "certs server": "-d none name",
    "passwd list": "none",
    "policy explain": "-c none",
    "policy test": "none",
    "policy learn": "none --vhost v",
    "records check": "none",
    "records cat": "none --json",
    "records follow": "none",
    "pipeline compact": "none root --json",
    "pipeline meter": "none --json",
    "pipeline rollup": "none",
    "pipeline top": "none",
    "pipeline audit": "none",
    "pipeline latency": "none",
    "pipeline topology": "none",
    "pipeline fraud": "none --events none",
    "pipeline report": "none",
    "pipeline prune": "none --before 2026-01-01",
    "plugins": "-c none --json",
    "bench send": "--count 1 --port PORT --json",
}
#: Options of a command that do not go together and that the parser alone accepts.
NONSENSE = (
    "run --group g",
    "run --demo -c file",
    "stat -c --json --csv",
    "manage create --stdin name=x",
    "bench pair",
    "bench pair --count 1 --size 0",
    "pipeline audit none --checkpoint c",
    "pipeline meter none --engine duckdb --master local",
    "pipeline fraud none --stream --spool s",
    "pipeline land --spool s --out o --body json",
)


def leaves(command: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    within = [action for action in command._actions if isinstance(action, argparse._SubParsersAction)]
    for action in within:
        for name, each in action.choices.items():
            yield from leaves(each, (*words, name))
    if not within:
        yield words


@pytest.mark.parametrize("words", list(leaves(parser())), ids=" ".join)
def test_an_option_that_no_command_has_is_usage(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--no-such-option"])
    captured = capsys.readouterr()
    assert (ended.value.code, captured.out) == (2, "")
    assert captured.err


@pytest.mark.parametrize("line", NONSENSE)
def test_options_that_do_not_go_together_are_usage(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    captured = capsys.readouterr()
    assert (ended.value.code, captured.out) == (2, "")
    assert captured.err


@pytest.mark.parametrize("command", UNUSABLE)
def test_an_unusable_input_is_a_problem_reported_on_stderr(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = str(closed.getsockname()[1])
        words = UNUSABLE[command].replace("BUS", f"127.0.0.1:{port}").replace("PORT", port).split()
        status = main([*command.split(), *words])
    captured = capsys.readouterr()
    assert (status, captured.out) == (1, ""), captured.err
    assert "Traceback" not in captured.err
    assert captured.err


@pytest.mark.parametrize(
    ("line", "extra"),
    [
        ("compact records root", "records"),
        ("report .", "records"),
        ("meter .", "records"),
        ("top .", "spark"),
        ("doctor", "spark"),
    ],
)
def test_a_missing_package_is_reported_with_the_extra_that_installs_the_package(
    line: str, extra: str, tmp_path: Path
) -> None:
    done = run_without(SPARKS | RECORDS, "pipeline", *line.split(), folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "Traceback" not in done.stderr
    assert f"pip install 'trouter[{extra}]'" in done.stderr
