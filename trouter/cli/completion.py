"""`trouter completion`: prints the shell's part of completion, and completes names of the schema."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from trouter.tools.words import SHORT_NAMES, long_type

if TYPE_CHECKING:
    from trouter.config.schema import Attribute, EntityType

SHELLS: Final = ("bash", "zsh", "fish")
#: The names of the programs to complete.
PROGRAMS: Final = ("trouter", "qdstat", "qdmanage", "qdrouterd")
#: Operations that name attributes; all but the first with values.
_WITH_ATTRIBUTES: Final = frozenset({"query", "create", "update"})
_WITH_TYPE: Final = frozenset({"get-types", "get-attributes", "get-operations", "get-annotations"})
_BOOLEANS: Final = ("yes", "no")

_EPILOG: Final = """to have it now, and always:
  bash: eval "$(trouter completion bash)"           put that into ~/.bashrc
  zsh:  eval "$(trouter completion zsh)"            put that into ~/.zshrc, behind compinit
  fish: trouter completion fish | source            put that into ~/.config/fish/config.fish
"""

Completer = Callable[..., Iterable[str]]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "completion",
        help="complete commands, options, types, attributes and values in a shell",
        description="Print what a shell reads to complete our commands.",
        epilog=_EPILOG,
    )
    parser.add_argument("shell", choices=SHELLS, help="which shell")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the shell's part; return the exit status."""
    from argcomplete.shell_integration import shellcode  # noqa: PLC0415  # only where it is asked for

    print(shellcode(list(PROGRAMS), shell=arguments.shell))
    return 0


def completed(action: argparse.Action, completer: Completer) -> None:
    """Complete the values of an option or argument by what ``completer`` returns."""
    action.completer = completer  # type: ignore[attr-defined]


# --- completers; called with prefix, action, parser, parsed_args


def types(**_: object) -> list[str]:
    """Return short names of types."""
    from trouter.config.types import TYPES  # noqa: PLC0415  # only when a shell asks

    return sorted({each.short for each in TYPES} | set(SHORT_NAMES))


def words(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Return attributes of the type named, then their values."""
    operation = (getattr(parsed_args, "operation", "") or "").lower()
    if operation in _WITH_TYPE:
        return types()
    kind = _kind(parsed_args)
    if operation not in _WITH_ATTRIBUTES:
        return []
    if kind is None:
        return ["type="] if operation == "create" else []
    name, equals, _text = prefix.partition("=")
    if equals:
        attribute = kind.attribute(name)
        return [] if attribute is None else [f"{name}={value}" for value in _values(attribute)]
    if operation == "query":
        return [attribute.name for attribute in kind.attributes]
    settable = [each for each in kind.attributes if (each.create if operation == "create" else each.update)]
    return [f"{attribute.name}=" for attribute in settable]


def _kind(parsed: argparse.Namespace) -> EntityType | None:
    from trouter.config.types import type_named  # noqa: PLC0415

    given = parsed.words or ()
    named = parsed.type or next((word.removeprefix("type=") for word in given if word.startswith("type=")), "")
    return type_named(long_type(named)) if named else None


def _values(attribute: Attribute) -> tuple[str, ...]:
    return attribute.values or (_BOOLEANS if attribute.kind.name == "BOOLEAN" else ())
