"""The manual's pages on the commands have every option, and `man` shows them without a warning."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Iterator
from pathlib import Path

import pytest

from manual import commands, man
from trouter.cli import parser
from trouter.cli.names import PROGRAMS

PARSERS = {
    **{f"trouter-{name}": each for name, each in commands.subcommands(parser())},
    **{name: make() for name, make in PROGRAMS.items()},
}
PAGES = commands.pages()
MAN = man.pages()


def options(command: ArgumentParser) -> Iterator[str]:
    """Yield every option of a command and its subcommands."""
    for action in command._actions:
        if action.help != SUPPRESS:
            yield from action.option_strings
    for _, below in commands.subcommands(command):
        yield from options(below)


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_a_page_names_every_option(name: str) -> None:
    documented = {*re.findall(r"(?<![\w-])--?\w[\w-]*", PAGES[name])}
    assert {*options(PARSERS[name])} <= documented
    pages = [text.replace(r"\-", "-") for page, text in MAN.items() if page.rpartition(".")[0] == name]
    assert [documented <= {*re.findall(r"(?<![\w-])--?\w[\w-]*", text)} for text in pages] == [True]


def test_there_is_a_page_for_each_program_in_its_section() -> None:
    assert {"trouter.1", "trouter-run.1", "qdstat.1", "qdmanage.1", "qdrouterd.8", "qdrouterd.conf.5"} <= set(MAN)


def test_a_page_names_no_path_of_the_machine_that_wrote_the_page() -> None:
    assert not [name for name, text in MAN.items() if str(Path.cwd()) in text or sys.prefix in text]


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is what shows manual pages")
def test_groff_formats_a_page_without_a_warning(tmp_path: Path) -> None:
    man.write(tmp_path / "ours", tmp_path / "theirs")
    assert [path.name for path in (tmp_path / "theirs").rglob("*.?")] == ["trouter-pipeline.1"]
    paths = sorted(map(str, tmp_path.rglob("*.*[158]")))
    assert len(paths) == len(MAN)
    command = ["groff", "-mandoc", "-ww", "-z", "-Kutf8", "-Tutf8", "-rLL=100n", *paths]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == ""
