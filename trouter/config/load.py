"""A file, or no file, to a Configuration; or to everything that is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from trouter.config.conf_form import parse_conf
from trouter.config.draft import draft_section
from trouter.config.entities import AddressEntity, ListenerEntity, LogEntity, RouterEntity
from trouter.config.json_form import parse_json
from trouter.config.problems import ConfigurationError, Findings, Place, Problem
from trouter.config.rules import check

BUILT_IN: Final = "(built-in configuration)"
DEFAULT_TEXT: Final = """\
# Used when no file is named: nothing but this machine can connect.
router {
    mode: standalone
}
listener {
    host: 127.0.0.1
    port: amqp
    saslMechanisms: ANONYMOUS
}
"""

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything the router was told at its start."""

    router: RouterEntity
    listeners: tuple[ListenerEntity, ...] = ()
    addresses: tuple[AddressEntity, ...] = ()
    logs: tuple[LogEntity, ...] = ()
    #: Where it comes from: a path, or a name in parentheses.
    source: str = BUILT_IN
    #: To be logged: old names, attributes without effect, values that are probably not meant.
    warnings: tuple[Problem, ...] = ()


def load(path: Path | None = None, text: str | None = None) -> Configuration:
    """The configuration in the file at `path`; in `text`, if given, `path` then only naming it; or the built-in one.

    ConfigurationError, with every problem there is, if it cannot be used.
    """
    file = BUILT_IN if path is None else str(path)
    if text is None:
        text = DEFAULT_TEXT if path is None else _read(path)
    elif path is None:
        file = "(text)"
    return parse(text, file)


def parse(text: str, file: str) -> Configuration:
    """The configuration in `text`, in the JSON form if `file` ends in `.json`; ConfigurationError as load()."""
    findings = Findings()
    form = parse_json if file.endswith(".json") else parse_conf
    sections = form(text.removeprefix("\ufeff"), file, findings)
    drafts = [draft for section in sections if (draft := draft_section(section, findings))]
    check(drafts)
    if findings.errors:
        raise ConfigurationError(sorted(findings.errors, key=lambda problem: problem.place))
    entities = [draft.type.entity(**draft.values, place=draft.section.place) for draft in drafts]
    return Configuration(
        router=next(iter(_only(RouterEntity, entities)), RouterEntity()),
        listeners=_only(ListenerEntity, entities),
        addresses=_only(AddressEntity, entities),
        logs=_only(LogEntity, entities),
        source=file,
        warnings=tuple(sorted(findings.warnings, key=lambda problem: problem.place)),
    )


def _only(kind: type[E], entities: list[object]) -> tuple[E, ...]:
    return tuple(entity for entity in entities if isinstance(entity, kind))


def _read(path: Path) -> str:
    """The text of a configuration file; ConfigurationError if there is none."""
    try:
        octets = path.read_bytes()
    except OSError as failure:
        raise _unusable(path, f"cannot be read: {failure.strerror or failure}") from failure
    if not octets.strip():
        raise _unusable(path, "is empty")
    try:
        return octets.decode()
    except UnicodeDecodeError as bad:
        line = octets.count(b"\n", 0, bad.start) + 1
        column = bad.start - octets.rfind(b"\n", 0, bad.start)
        raise ConfigurationError([Problem(Place(str(path), line, column), "is not UTF-8 text")]) from bad


def _unusable(path: Path, message: str) -> ConfigurationError:
    return ConfigurationError([Problem(Place(str(path)), message)])
