"""Commands that other distributions bring by entry points: shown, run, named where they are not installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trouter.cli import COMMANDS, ELSEWHERE, GROUP, main, parser

CODE = """
def add_parser(commands):
    commands.add_parser("greet", help="greet the user").set_defaults(run=lambda _: print("hello") or 0)
"""
Bring = Callable[[str, str], None]


@pytest.fixture
def bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bring:
    """Install a distribution with the command `greet`, whose module has this name and code."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(module: str, code: str) -> None:
        (tmp_path / f"{module}.py").write_text(code)
        about = tmp_path / "greeting-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[{GROUP}]\ngreet = {module}\n")

    return install


def ended(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int | str | None, str, str]:
    """Return the exit status, output and errors of a command line that ends the process."""
    with pytest.raises(SystemExit) as end:
        main(words)
    return end.value.code, *capsys.readouterr()


def test_a_command_of_another_distribution_is_shown_and_runs(bring: Bring, capsys: pytest.CaptureFixture[str]) -> None:
    bring("greeting_commands", CODE)
    assert "greet the user" in ended(capsys, "--help")[1]
    assert main(["greet"]) == 0
    assert capsys.readouterr().out == "hello\n"


def test_a_command_that_does_not_load_leaves_the_others(bring: Bring, capsys: pytest.CaptureFixture[str]) -> None:
    bring("greeting_broken", "import nothing_of_this_name\n")
    status, shown, _ = ended(capsys, "--help")
    assert status == 0
    assert "start a router in the foreground" in shown
    status, shown, said = ended(capsys, "greet")
    assert (status, shown) == (2, "")
    assert said.endswith(
        "trouter: the command 'greet' does not load: No module named 'nothing_of_this_name' (see `trouter --help`)\n"
    )


@pytest.mark.parametrize("words", [["pipeline"], ["pipeline", "meter", "root"], ["pipeline", "--help"]], ids=" ".join)
def test_a_command_that_is_not_installed_is_named_with_its_cure(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("trouter.cli._installed", dict)
    cure = "pip install 'trouter[spark]' brings it"
    assert f"`trouter pipeline` is not here: {cure}.\n" in ended(capsys, "--help")[1]
    status, shown, said = ended(capsys, *words)
    assert (status, shown) == (2, "")
    assert said.endswith(f"trouter: there is no command 'pipeline' here: {cure} (see `trouter --help`)\n")


def test_the_help_says_nothing_of_what_is_missing_where_nothing_is(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ended(capsys, "--help")[1]
    assert "land, meter and audit" in shown
    assert "is not here" not in shown


def test_no_name_is_both_a_command_of_ours_and_of_another_distribution() -> None:
    assert not ELSEWHERE.keys() & {*COMMANDS}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_entry_point_is_read_for_a_command_of_ours(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A router that starts does not wait for it."""

    def read() -> None:
        pytest.fail("entry points are read")

    monkeypatch.setattr("trouter.cli._installed", read)
    parser(command)
