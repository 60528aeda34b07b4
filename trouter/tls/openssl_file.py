"""OpenSSL's configuration file of this machine, as config(5) of OpenSSL describes it."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

#: The section of what stands before the first section.
DEFAULT: Final = "default"
#: The most files that include each other.
_MAX_DEPTH: Final = 20
_CONTINUED: Final = re.compile(r"(?<!\\)\\\r?\n")
#: What is no comment, in which `#` may be quoted.
_BEFORE_COMMENT: Final = re.compile(r"""(?:[^"'#\\]|\\.|"[^"]*"|'[^']*'|["'\\](?!.))*""")
_INCLUDE: Final = re.compile(r"\.include\b\s*=?\s*(.+)")
_SECTION: Final = re.compile(r"\[\s*([^\]]+?)\s*\]")
_ASSIGNMENT: Final = re.compile(r"(?:([^\s=:]+)::)?([^\s=]+)\s*=\s*(.*)")
#: What a value consists of: a quoted text, an escaped character, a variable.
_SPECIAL: Final = re.compile(
    r"""(?P<quoted>"[^"]*"|'[^']*')|\\(?P<escaped>.)|\$(?:\{(?P<a>[^}]+)\}|\((?P<b>[^)]+)\)|(?P<c>\w+(?:::\w+)?))"""
)

#: The values of each section, by name.
Sections = Mapping[str, Mapping[str, str]]


def openssl_file() -> Path:
    """Return the file that OpenSSL reads: $OPENSSL_CONF, or the one in its folder."""
    named = os.environ.get("OPENSSL_CONF")
    return (
        Path(ssl.get_default_verify_paths().openssl_cafile).with_name("openssl.cnf") if named is None else Path(named)
    )


def read_openssl_file(path: Path) -> Sections:
    """Return what the file says; OSError if it cannot be read, ValueError if OpenSSL would not take it."""
    sections: dict[str, dict[str, str]] = {DEFAULT: {}}
    current = DEFAULT
    for line in _lines(path, 0):
        if section := _SECTION.fullmatch(line):
            current = section[1]
            sections.setdefault(current, {})
        elif assignment := _ASSIGNMENT.fullmatch(line):
            of, name, text = assignment[1] or current, assignment[2], assignment[3]
            sections.setdefault(of, {})[name] = _value(text, sections, current)
        elif not line.startswith(".pragma"):
            raise ValueError(f"{path}: a line is no assignment")
    return sections


def _lines(path: Path, depth: int) -> Iterator[str]:
    """Yield the lines of a file that say something, and in the place of an include those of its files."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"{path}: more than {_MAX_DEPTH} files include each other")
    text = path.read_text(encoding="utf-8", errors="replace")
    for whole in _CONTINUED.sub("", text).splitlines():
        match = _BEFORE_COMMENT.match(whole)
        line = whole[: match.end()].strip() if match else ""
        if include := _INCLUDE.fullmatch(line):
            for file in _included(include[1].strip("\"'")):
                yield from _lines(file, depth + 1)
        elif line:
            yield line


def _included(name: str) -> list[Path]:
    """Return the files that an include names: one, or those of a folder, or none if there is none."""
    path = Path(os.environ.get("OPENSSL_CONF_INCLUDE", ""), name)
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix in (".cnf", ".conf"))
    return [path] if path.exists() else []


def _value(text: str, sections: Sections, current: str) -> str:
    """Return a value without its quotes, and with what its variables stand for; ValueError if one is unknown."""

    def replace(special: re.Match[str]) -> str:
        if special["quoted"]:
            return special["quoted"][1:-1]
        if special["escaped"]:
            return special["escaped"]
        section, _, name = (special["a"] or special["b"] or special["c"]).rpartition("::")
        places = (os.environ,) if section == "ENV" else (sections.get(section or current, {}), sections[DEFAULT])
        for place in places:
            if name in place:
                return place[name]
        raise ValueError(f"the variable {name} has no value")

    return _SPECIAL.sub(replace, text)
