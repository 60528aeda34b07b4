"""Saved connection settings, in a file of the user that never holds a password.

A context holds options of `add_server_options` by their names. Paths are kept absolute.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from trouter._text import escape_controls

from .failures import WrongOption
from .files import replace

#: The options that a context may hold.
FILES: Final = ("ssl_certificate", "ssl_key", "ssl_password_file", "ssl_trustfile", "sasl_password_file")
KEPT: Final = ("bus", "timeout", "ssl_disable_peer_name_verify", "sasl_mechanisms", "sasl_username", *FILES)
#: The options of the user: if a command line has one, none of these comes from the context.
_USER: Final = ("sasl_username", "sasl_password", "sasl_password_file")
#: The largest file that is read, in bytes.
MAX_FILE_BYTES: Final = 1 << 20
MODE: Final = 0o600

Settings = dict[str, Any]


@dataclass(slots=True)
class Contexts:
    """The content of the user's file; `load` makes it."""

    path: Path
    #: The context in use; "" for none.
    current: str = ""
    known: dict[str, Settings] = field(default_factory=dict)

    @classmethod
    def load(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the contexts of the user's file, none if there is no file; ValueError if it is invalid, OSError."""
        folder = environment.get("XDG_CONFIG_HOME") or environment.get("HOME", "") + "/.config"
        found = cls(Path(folder, "trouter", "contexts.json"))
        try:
            with found.path.open("rb") as file:
                given = json.loads(file.read(MAX_FILE_BYTES))
            found.current = str(given["current"])
            found.known = {str(name): _settings(kept) for name, kept in given["contexts"].items()}
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ValueError(f"{found.path} is not a file of contexts") from None
        return found

    def save(self) -> None:
        """Replace the file in one step, readable by its owner only; OSError."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps({"current": self.current, "contexts": self.known}, indent=2, sort_keys=True)
        replace(self.path, f"{text}\n".encode(), MODE)

    def get(self, name: str) -> Settings:
        """Return the settings of a context; ValueError if there is none of this name."""
        try:
            return self.known[name]
        except KeyError:
            raise ValueError(self.unknown(name)) from None

    def unknown(self, name: str) -> str:
        """Return the error for a name that no context has."""
        return f"there is no context {name!r}; known: {', '.join(sorted(self.known)) or 'none'}"


def _settings(kept: object) -> Settings:
    if isinstance(kept, dict) and kept.keys() <= set(KEPT):
        return kept
    raise ValueError


def saved_names(**_: object) -> list[str]:
    """Return the names of the user's contexts, for a shell that completes them."""
    return sorted(Contexts.load().known)


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the options of a command line that a context may hold."""
    given = {name: value for name in KEPT if (value := getattr(arguments, name))}
    return {name: str(Path(value).absolute()) if name in FILES else value for name, value in given.items()}


def with_context(
    arguments: argparse.Namespace, environment: Mapping[str, str], *, bus_given: bool
) -> argparse.Namespace:
    """Return the arguments completed by the context that they name, else by the one in use; ValueError, OSError.

    A server named by other options gets nothing of the context in use: its password is for another server.
    """
    name = getattr(arguments, "context", None)
    if name is None and (bus_given or not hasattr(arguments, "context")):
        return arguments
    contexts = Contexts.load(environment)
    if name is not None and name not in contexts.known:
        raise WrongOption(contexts.unknown(name))
    if name is None and contexts.current and sys.stderr.isatty():
        used = escape_controls(contexts.current)
        sys.stderr.write(f"trouter: uses the saved context {used}; `trouter contexts use` ends that\n")
    name = name or contexts.current
    if not name:
        return arguments
    given = vars(arguments)
    other_user = any(given[option] for option in _USER)
    settings = {
        option: value
        for option, value in contexts.get(name).items()
        if not given[option] and not (other_user and option in _USER)
    }
    return argparse.Namespace(**given | settings)
