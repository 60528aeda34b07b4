"""Passwords: reads them from the source that an attribute names, and keeps them in objects that never show them."""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable
from typing import Final, Never

from trouter.config.files import UNREADABLE, opened, reason
from trouter.config.schema import BadValue, Doubt

#: Limit of the first line of a file, in bytes.
MAX_FILE_PASSWORD: Final = 65536


class Secret:
    """A password that no repr shows; secrets with equal texts are equal."""

    __slots__ = ("_text", "fault", "in_clear", "path")

    def __init__(self, text: str, *, in_clear: bool = False, path: str = "", fault: str = "") -> None:
        """`in_clear`: the configuration itself holds it. `path`: the file that holds it. `fault`: why there is none."""
        self._text = text
        self.fault = fault
        self.in_clear = in_clear
        self.path = path

    def reveal(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __reduce__(self) -> Never:
        raise TypeError("a secret is not written anywhere")


def password_of(text: str) -> Secret:
    """Return a password: `env:NAME`, `file:PATH`, `pass:TEXT`, `literal:TEXT`, or the text itself."""
    prefix, found, rest = text.partition(":")
    if found and prefix in SOURCES:
        return SOURCES[prefix](rest)
    return Secret(text, in_clear=True)


def sasl_password_of(text: str) -> Secret:
    """Return the same for ``saslPassword``, where `literal:` is a part of the password, as with Qpid Dispatch."""
    return _in_clear(text) if text.startswith("literal:") else password_of(text)


def source_of(text: str) -> tuple[str, str]:
    """Return the source that a text names for a password, `file` or `env`, and its name; empty for none."""
    prefix, found, rest = text.partition(":")
    if not found or prefix not in {"file", "env"}:
        return "", ""
    return prefix, rest.strip() if prefix == "file" else rest.lstrip()


def from_file(path: str) -> Secret:
    """Return the first line of a file; Doubt if it cannot be read, and BadValue if it is no password."""
    try:
        with opened(path) as file:
            line = file.readline(MAX_FILE_PASSWORD + 2)
    except (OSError, ValueError) as failure:
        message = f"the password's file cannot be read: {reason(failure)}"
        raise Doubt(UNREADABLE, Secret("", path=path, fault=message), message) from None
    data = line.rstrip(b"\r\n")
    if len(data) > MAX_FILE_PASSWORD:
        message = f"the first line of the password's file is longer than {MAX_FILE_PASSWORD} bytes"
        raise BadValue(message, "write the password, and only that, into its first line")
    try:
        return Secret(data.decode(), path=path)
    except UnicodeDecodeError:
        raise BadValue("the first line of the password's file is not UTF-8 text", "write it in UTF-8") from None


def _from_environment(name: str) -> Secret:
    name = name.lstrip()
    value = os.environ.get(name)
    if value is None:
        message = "the environment variable that should hold the password is not set"
        raise Doubt(UNREADABLE, Secret("", fault=message), message, f"set {name}")
    return Secret(value)


def _in_clear(text: str) -> Secret:
    return Secret(text, in_clear=True)


SOURCES: Final[dict[str, Callable[[str], Secret]]] = {
    "env": _from_environment,
    "file": lambda path: from_file(path.strip()),
    "pass": _in_clear,
    "literal": _in_clear,
}
