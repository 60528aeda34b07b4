"""`trouter contexts`: connection settings by name, so that they need not be typed again."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Final

from trouter._text import escape_controls
from trouter.tools.contexts import Contexts, saved_names, settings_of
from trouter.tools.failures import UsageError, print_problem
from trouter.tools.options import ConnectionOptions, add_server_options
from trouter.tools.table import Grid, TableCell, aligned

_EPILOG: Final = """examples:
  trouter contexts add prod -b amqps://router.example.com --ssl-trustfile ca.pem --sasl-username ann \\
      --sasl-password-file ~/ann.password
  trouter contexts use prod            what the tools connect to from now on
  trouter stat -c --context prod       only this time
  trouter contexts use                 none

A context holds no password, only the name of the file that has one. -b and $TROUTER_BUS precede the context in use.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "contexts",
        help="keep connection settings by name",
        description="Keep connection settings by name, and say which of them the tools use.",
        epilog=_EPILOG,
    )
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add = _action(actions, "add", _add, "save settings, in place of those of this name")
    add.add_argument("name", metavar="NAME", help="the name of the settings")
    add_server_options(add, contexts=False)
    listed = _action(actions, "list", _list, "list the names, the one in use with an asterisk")
    listed.add_argument("--json", action="store_true", help="one JSON object")
    for name, act, text in (
        ("use", _use, "have the tools use these settings; without NAME none"),
        ("show", _show, "print settings as JSON; without NAME those in use"),
    ):
        _name(_action(actions, name, act, text), optional=True)
    _name(_action(actions, "remove", _remove, "forget settings"), optional=False)


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    act: Callable[[argparse.Namespace, Contexts], None],
    text: str,
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=f"{text.capitalize()}.")
    parser.set_defaults(run=run, act=act)
    return parser


def _name(parser: argparse.ArgumentParser, *, optional: bool) -> None:
    action = parser.add_argument("name", nargs="?" if optional else None, default="", metavar="NAME", help="which")
    action.completer = saved_names  # type: ignore[attr-defined]


def run(arguments: argparse.Namespace) -> int:
    """Run one action on the file of contexts; return the exit status."""
    try:
        arguments.act(arguments, Contexts.load())
    except UsageError:
        raise
    except (OSError, ValueError) as failure:
        print_problem(arguments, failure)
        return 1
    return 0


def _add(arguments: argparse.Namespace, contexts: Contexts) -> None:
    if not arguments.name:
        raise ValueError("NAME is empty: give the context a name")
    options = ConnectionOptions.of(arguments, {})
    unsaved = argparse.Namespace(**vars(arguments) | {"ssl_password_file": None, "sasl_password_file": None})
    plain = ConnectionOptions.of(unsaved, {})
    if plain.password or plain.key_password:
        raise ValueError("a context holds no password: put it into a file, and name that with --sasl-password-file")
    contexts.known[arguments.name] = settings_of(arguments)
    contexts.save()
    print(f"{escape_controls(arguments.name)}: {options.server}")


def _list(arguments: argparse.Namespace, contexts: Contexts) -> None:
    if arguments.json:
        known = [{"name": name, **_options(kept)} for name, kept in sorted(contexts.known.items())]
        print(json.dumps({"current": contexts.current or None, "contexts": known}, indent=2))
        return
    rows = [
        [
            TableCell("*" if name == contexts.current else ""),
            *(TableCell(escape_controls(str(each))) for each in (name, *_shown(kept))),
        ]
        for name, kept in sorted(contexts.known.items())
    ]
    print("\n".join(aligned(Grid("Contexts", ("", "name", "bus", "user"), rows))))


def _shown(kept: dict[str, object]) -> tuple[object, object]:
    return kept.get("bus", ""), kept.get("sasl_username", "")


def _use(arguments: argparse.Namespace, contexts: Contexts) -> None:
    if arguments.name:
        contexts.get(arguments.name)
    contexts.current = arguments.name
    contexts.save()


def _show(arguments: argparse.Namespace, contexts: Contexts) -> None:
    name = arguments.name or contexts.current
    if not name:
        raise ValueError("no context is in use: name one, or choose it with `trouter contexts use NAME`")
    print(json.dumps(_options(contexts.get(name)), indent=2))


def _options(kept: dict[str, object]) -> dict[str, object]:
    """Return settings by the names of the options."""
    return {key.replace("_", "-"): value for key, value in kept.items()}


def _remove(arguments: argparse.Namespace, contexts: Contexts) -> None:
    contexts.get(arguments.name)
    del contexts.known[arguments.name]
    if contexts.current == arguments.name:
        contexts.current = ""
    contexts.save()
