"""The manual of the tools names every existing option, and no other."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from manual.commands import subcommands
from trouter.cli import Parser, manage, parser, qdrouterd, stat
from trouter.cli.completion import SHELLS
from trouter.cli.manage import PLANS
from trouter.tools import options

MANUAL = (Path(__file__).parents[2] / "docs" / "tools.md").read_text(encoding="utf-8")
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def every_option() -> set[str]:
    """Return the options of all commands, as the page has chapters about more than the two."""
    daemon = Parser(prog="x")
    qdrouterd.add_options(daemon)
    return {*options_of(parser()), *options_of(daemon)}


def options_of(command: argparse.ArgumentParser) -> Iterator[str]:
    for action in command._actions:
        yield from action.option_strings
    for _, below in subcommands(command):
        yield from options_of(below)


@pytest.mark.parametrize(
    ("heading", "add"),
    [
        ("## trouter manage", manage.add_options),
        ("## trouter stat", stat.add_options),
        ("## qdrouterd", qdrouterd.add_options),
    ],
    ids=["manage", "stat", "qdrouterd"],
)
def test_every_option_stands_in_its_chapter(heading: str, add: Callable[[argparse.ArgumentParser], None]) -> None:
    command = Parser(prog="x")
    add(command)
    text = re.split(r"^## ", MANUAL.partition(heading)[2], maxsplit=1, flags=re.MULTILINE)[0]
    text += MANUAL.partition("## Connecting")[2].partition("### Secrets")[0]
    named = set(OPTION.findall(text))
    assert [
        action.option_strings
        for action in command._actions
        if action.option_strings
        if not set(action.option_strings) & named
    ] == []


def test_no_option_is_made_up() -> None:
    assert {name for name in OPTION.findall(MANUAL) if name.startswith("--")} <= every_option()


def test_every_operation_variable_and_shell_is_there() -> None:
    wanted = [*PLANS, *SHELLS, options.BUS_VARIABLE, options.USER_VARIABLE, options.PASSWORD_VARIABLE]
    for word in (*wanted, options.KEY_PASSWORD_VARIABLE):
        assert word in MANUAL
