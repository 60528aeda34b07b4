"""The manual's pages on the commands, as Markdown, written from the parsers of the command lines."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Final, cast

from trouter.cli import parser
from trouter.cli.names import PROGRAMS
from trouter.cli.qdrouterd import CONFIGURATION, default_configuration

WIDTH: Final = 100


def pages() -> dict[str, str]:
    """Return the page of each command of trouter, and of each program, by its name: `trouter-stat`, `qdstat`."""
    top = parser()
    commands = dict(subcommands(top))
    own = {"trouter": _page(top)} | {f"trouter-{name}": _page(each) for name, each in commands.items()}
    return own | {name: _page(make()) for name, make in PROGRAMS.items()}


def subcommands(command: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the direct subcommands of a command, each with its name."""
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _page(command: argparse.ArgumentParser) -> str:
    return "\n".join([f"# {command.prog}", "", *_chapter(command, 2)])


def _usage(command: argparse.ArgumentParser) -> str:
    """Return the usage line, at one width on every machine."""
    formatter = _formatter_class(command)(command.prog, width=WIDTH)
    formatter.add_usage(command.usage, command._actions, command._mutually_exclusive_groups, "")
    return formatter.format_help().strip()


def _formatter_class(command: argparse.ArgumentParser) -> type[argparse.HelpFormatter]:
    """Return the class that formats the help of a command."""
    return cast("type[argparse.HelpFormatter]", command.formatter_class)


def _chapter(command: argparse.ArgumentParser, level: int) -> list[str]:
    """Return the chapters of a command and its subcommands; trouter's own subcommands have pages of their own."""
    lines = [_text(command.description or ""), "", "```", _usage(command), "```", ""]
    for group in command._action_groups:
        shown = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
        below = [action for action in shown if isinstance(action, argparse._SubParsersAction)]
        plain = [action for action in shown if action not in below]
        if plain:
            title = (group.title or "options").capitalize()
            lines += [f"{'#' * level} {title}", "", "| | |", "|---|---|"]
            lines += [*(f"| {_name(command, each)} | {_help(command, each)} |" for each in plain), ""]
    if command.epilog:
        lines += _epilog(command, level)
    if command.prog == "trouter":
        return [*lines, *_table_of_commands(command)]
    for name, each in subcommands(command):
        lines += [f"{'#' * level} {command.prog} {name}", "", *_chapter(each, level + 1)]
    return lines


def _table_of_commands(top: argparse.ArgumentParser) -> list[str]:
    rows = [
        f"| `trouter {choice.dest}` | {_text(choice.help or '')} |"
        for action in top._actions
        if isinstance(action, argparse._SubParsersAction)
        for choice in action._choices_actions
    ]
    return ["## Commands", "", "| | |", "|---|---|", *rows, ""]


def _name(command: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter = command._get_formatter()
    return f"`{_cell(formatter._format_action_invocation(action))}`"


def _help(command: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = command._get_formatter()._expand_help(action) if action.help else ""
    if isinstance(action.choices, (list, tuple, set, frozenset)) and action.metavar is not None:
        text += f" ({', '.join(map(str, action.choices))})"
    return _cell(_text(text))


def _epilog(command: argparse.ArgumentParser, level: int) -> list[str]:
    """Return a text as it is where its lines are kept, else as a paragraph."""
    kept = issubclass(_formatter_class(command), argparse.RawDescriptionHelpFormatter)
    epilog = (command.epilog or "").strip("\n")
    shown = ["```", epilog, "```"] if kept else [_text(epilog)]
    return [f"{'#' * level} More", "", *shown, ""]


def _text(text: str) -> str:
    """Return a text as one paragraph, without values of the machine that writes the page."""
    told = re.sub(r"\s+", " ", text).strip().replace(str(default_configuration()), f"/{CONFIGURATION}")
    return told.replace("<", "&lt;").replace("*", r"\*")


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
