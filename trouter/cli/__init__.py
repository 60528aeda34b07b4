"""The command `trouter`. Errors go to stderr; exit status 1 is for problems, 2 for usage.

Each subcommand is a module with `add_parser(subparsers)`, which sets `run` to a function of the parsed arguments that
returns the exit status. Other distributions bring commands by entry points of the group `trouter.commands`.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import trouter
from trouter import _twin
from trouter._text import escape_controls

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Each is a module beside this one, imported when it is needed: the router must not wait for the tools.
COMMANDS: Final = (
    "run",
    "init",
    "check",
    "migrate",
    "stat",
    "manage",
    "drain",
    "network",
    "health",
    "send",
    "receive",
    "request",
    "reply",
    "top",
    "certs",
    "passwd",
    "policy",
    "records",
    "plugins",
    "bench",
    "diagnose",
    "contexts",
    "version",
    "completion",
)
#: Group of entry points, each a module as those of COMMANDS; read only for a word that is not among these.
GROUP: Final = "trouter.commands"
#: Command of another distribution of this project -> the cure where it is not installed.
ELSEWHERE: Final = {"pipeline": "pip install 'trouter[spark]' brings it"}
#: Names of Qpid Dispatch's programs, under which the command may be called.
OLDER_NAMES: Final = ("qdstat", "qdmanage", "qdrouterd")
#: Top-level module that not every installation has -> the extra that brings it.
EXTRAS: Final = {
    "confluent_kafka": "kafka",
    "duckdb": "records",
    "matplotlib": "records",
    "numpy": "records",
    "pyarrow": "records",
    "fastavro": "spark",
    "google": "spark",
    "pandas": "spark",
    "pyspark": "spark",
}
#: The exit status after Ctrl-C, the one that a shell reports for a program that SIGINT ended.
INTERRUPTED: Final = 130
#: The words after an unknown option, which may be its value.
BEHIND_UNKNOWN: Final = re.compile(r"(?s)(unrecognized arguments: (?:[^-\s]\S* )*-\S+) .*")
#: How much an option has to be like another one to be suggested for it, from 0 to 1.
NEAR: Final = 0.7
#: The option among unknown arguments.
UNKNOWN_OPTION: Final = re.compile(r"unrecognized arguments: (?:[^-\s]\S* )*(--[^\s=]+)")
#: Set to anything, a failure ends with its traceback; the tools of Qpid Dispatch have this variable.
DEBUG: Final = "_QPID_DISPATCH_TOOLS_DEBUG_"
#: Programs that run for long: the log of the system keeps the traceback of a fault.
PROCESSES: Final = ("trouter run", "qdrouterd")
#: Set while a shell asks for completions.
COMPLETING: Final = "_ARGCOMPLETE"


class Parser(argparse.ArgumentParser):
    """A standard parser whose messages are one line, and never repeat values of options.

    usage_status: the exit status of a wrong command line, and of UsageError from a command. intermixed: options may
    stand between the words of a list. older: the usage precedes a message, as of Qpid Dispatch's programs. A value may
    be a password, given to a misspelt option. An epilog of several lines is shown as it is written.
    """

    def __init__(
        self, *, usage_status: int = 2, intermixed: bool = False, older: bool = False, **settings: Any
    ) -> None:
        if "\n" in settings.get("epilog", ""):
            settings["formatter_class"] = argparse.RawDescriptionHelpFormatter
        super().__init__(**settings)
        self.usage_status = usage_status
        self._older = older
        self._intermixed = intermixed
        self._given: Sequence[str] = ()
        self.set_defaults(command_parser=self)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            of_command: Parser = parsed.command_parser  # the one whose usage helps
            of_command.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if args is not None:
            self._given = tuple(args)
        if not self._intermixed or COMPLETING in os.environ:
            return super().parse_known_args(args, namespace)
        self._intermixed = False
        try:
            parsed, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixed = True
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            near = get_close_matches(str(value), action.choices, 1)
            cure = f", did you mean {near[0]!r}?" if near else ""
            if self.prog == "trouter" and value in ELSEWHERE:
                cure = f" here: {ELSEWHERE[value]}"
            raise argparse.ArgumentError(None, f"there is no {str(action.metavar).lower()} {value!r}{cure}")
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            near = get_close_matches(str(value), map(str, action.choices or ()), 1)
            if near and not self._older:
                raise argparse.ArgumentError(action, f"{error.message}, did you mean {near[0]!r}?") from None
            raise

    def error(self, message: str) -> NoReturn:
        for given in self._given:
            name, equals, value = given.partition("=")
            if equals and given.startswith("-"):
                message = message.replace(given, f"{name}=...").replace(repr(value), "'...'")
        message = BEHIND_UNKNOWN.sub(r"\1 ...", message)
        if self._older:
            self.print_usage(sys.stderr)
            self.exit(self.usage_status, f"{self.prog}: {message}\n")
        within = next((each for each in self._actions if isinstance(each, argparse._SubParsersAction)), None)
        if within is not None and message.endswith(f"required: {within.metavar}"):
            word = str(within.metavar).lower()
            message = f"give {'an' if word[0] in 'aeiou' else 'a'} {word}: {', '.join(within.choices)}"
        elif unknown := UNKNOWN_OPTION.match(message):
            near = get_close_matches(unknown[1], self._option_string_actions, 1, NEAR)
            message += f", did you mean {near[0]}?" if near else ""
        self.exit(self.usage_status, f"{self.prog}: {escape_controls(message)} (see `{self.prog} --help`)\n")


class PrintVersion(argparse.Action):
    """Print the version and which twin of the hot modules runs; only then are those modules imported."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(f"trouter {trouter.__version__} ({_twin.running()}, Python {sys.version.split()[0]})")
        parser.exit(0)


def parser(only: str = "") -> argparse.ArgumentParser:
    """Return the command line: all of it, or as much as is needed for one command."""
    others = {} if only in COMMANDS else _installed()
    absent = [f"`trouter {name}` is not here: {ELSEWHERE[name]}." for name in ELSEWHERE if name not in others]
    told = ["`trouter COMMAND --help` tells more about a command.", *absent]
    top = Parser(prog="trouter", description="An AMQP 1.0 message router.", epilog="\n".join(told))
    top.add_argument("-v", "--version", action=PrintVersion, nargs=0, help="print version and compiled or interpreted")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    known = {only} & {*COMMANDS, *others} or {*COMMANDS, *others}
    for command in COMMANDS:
        if command in known:
            import_module(f"trouter.cli.{command}").add_parser(commands)
    for command, entry in others.items():
        if command in known:
            try:
                module = entry.load()
            except ImportError as error:
                if command == only:
                    top.error(f"the command {command!r} does not load: {error}")
                continue  # the other commands do
            module.add_parser(commands)
    return top


def _installed() -> dict[str, EntryPoint]:
    """Return the commands that other distributions bring, by name."""
    from importlib.metadata import entry_points  # noqa: PLC0415  # not on the way of a router that starts

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; run `qdstat`, `qdmanage` or `qdrouterd` if called so."""
    if arguments is None:
        # Modules make some hundred thousand objects that stay: the collector's default threshold would look for garbage
        # among them for a sixth of the start.
        gc.set_threshold(50_000)
        name, arguments = Path(sys.argv[0]).name, sys.argv[1:]
        if name in OLDER_NAMES:
            program: Callable[[], int] = getattr(import_module("trouter.cli.names"), name)
            return program()
    return obey(parser(next(iter(arguments), "")), arguments)


def obey(command_line: argparse.ArgumentParser, arguments: Sequence[str]) -> int:
    """Run the command that the arguments name; return the exit status."""
    if COMPLETING in os.environ:
        import argcomplete  # noqa: PLC0415  # only when a shell asks

        argcomplete.autocomplete(command_line)
    parsed = command_line.parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = parsed.run
    try:
        return command(parsed)
    except argparse.ArgumentTypeError as wrong:  # also UsageError of the tools, which are not imported for it
        of_command: Parser = parsed.command_parser
        of_command.error(str(wrong))
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        print(f"{command_line.prog}: {error}: pip install 'trouter[{extra}]'", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone; say nothing more, also not when Python flushes at exit.
        sys.stderr.close()
        return 1
    except Exception as failure:
        of_command = parsed.command_parser
        if DEBUG in os.environ or of_command.prog in PROCESSES:
            raise
        cure = f"set {DEBUG}=1 to see where, and report it"
        print(f"{of_command.prog}: a fault of this program: {failure} ({cure})", file=sys.stderr)
        return 1
