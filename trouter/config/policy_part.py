"""The policy as a part of a configuration: its sections `policy` and `vhost`, which change without the others.

In the file of a router the new sections take the place of the former ones, at its end; all else stays as it is written.
A comment directly above a section belongs to it.
"""

from __future__ import annotations

import dataclasses
import re
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from trouter.config.conf_form import ConfReader
from trouter.config.configuration import HOLDS, Configuration
from trouter.config.entities import PolicyEntity, VhostEntity
from trouter.config.load import sections_of
from trouter.config.nodes import Section
from trouter.config.problems import ConfigurationError, Findings, Problem, SourcePosition
from trouter.config.reader import TooDeep
from trouter.config.types import type_of_section

_POLICY: Final = PolicyEntity.type.section
_VHOST: Final = VhostEntity.type.section
_OF_POLICY: Final = frozenset({PolicyEntity, VhostEntity})
#: The mark of an editor at the beginning of a text, and how lines of a policy may end.
_MARK: Final = "\ufeff"
_CARRIAGE_RETURNS: Final = re.compile(r"\r+\n")
#: What may stand behind a section: the rest of its line, and empty lines.
_BEHIND: Final = re.compile(r"[ \t\r]*(?:#[^\n]*)?(?:\n(?:[ \t\r]*\n)*|\Z)")


class _Piece(NamedTuple):
    """A section in a text, with the comments that belong to it."""

    name: str
    begin: int
    end: int


def policy_sections(text: str, file: str, *, is_conf: bool = False) -> list[Section]:
    """Return the sections of a text that is a policy; ConfigurationError if it has others.

    ``is_conf``: as of sections_of.
    """
    sections = sections_of(text, file, is_conf=is_conf)
    problems = [
        Problem(
            each.place,
            "only vhosts, and one section policy, are the policy of a network",
            each.name,
            suggestion="write it into the file of the router",
        )
        for each in sections
        if _named(each.name) not in {_POLICY, _VHOST}
    ]
    if problems:
        raise ConfigurationError(problems)
    return sections


def _named(spelling: str) -> str:
    """Return the name of the sections that ``spelling`` stands for; empty for unknown ones."""
    kind = type_of_section(spelling)
    return "" if kind is None else kind.section


def with_policy(text: str, policy: str, name: str) -> str:
    """Return the text of a configuration with the sections of ``policy`` in the place of its own.

    A policy without a section `policy` leaves that of the configuration. Both texts have the `.conf` form; ``name`` is
    what the problems of the policy call it. ConfigurationError as policy_sections, and without a vhost.
    """
    policy = _CARRIAGE_RETURNS.sub("\n", policy.removeprefix(_MARK))
    kinds = {_named(each.name) for each in policy_sections(policy, name, is_conf=True)}
    if _VHOST not in kinds:
        raise ConfigurationError([Problem(SourcePosition(name), "there is no vhost in it")])
    mark = _MARK if text.startswith(_MARK) else ""
    kept = text.removeprefix(mark)
    for piece in reversed(_pieces(kept)):
        if _named(piece.name) in kinds:
            kept = kept[: piece.begin] + kept[piece.end :]
    given = "\n\n".join(policy[piece.begin : piece.end].strip() for piece in _pieces(policy))
    newline = "\r\n" if "\r\n" in text else "\n"
    return mark + kept + _apart(kept, newline) + f"{given}\n".replace("\n", newline)


def _apart(kept: str, newline: str) -> str:
    """Return the newlines that a text lacks for the sections behind it to stand behind an empty line."""
    if not kept.strip():
        return newline if kept.rpartition("\n")[2] else ""
    present = kept[len(kept.rstrip()) :].count("\n")
    return newline * max(2 - present, 0 if kept.endswith("\n") else 1)


def _pieces(text: str) -> list[_Piece]:
    """Return the sections of a text as far as they can be read, with their places in the text."""
    reader = ConfReader(text, "", Findings())
    found: list[_Piece] = []
    with suppress(TooDeep):
        found += _read(reader)
    # the reader sees no carriage return before a newline
    passed = [match.start() - number for number, match in enumerate(re.finditer("\r\n", text))]
    return [
        _Piece(each.name, *(place + bisect_left(passed, place) for place in (each.begin, each.end))) for each in found
    ]


def _read(reader: ConfReader) -> Iterator[_Piece]:
    end = 0
    while reader.skip():
        start = reader.offset
        section = reader.one_section()
        if section is None:
            end = reader.offset
            continue
        begin = _with_comments(reader.text, end, start)
        behind = _BEHIND.match(reader.text, reader.offset)
        own_line = begin == 0 or reader.text[begin - 1] == "\n"
        end = behind.end() if behind and own_line else reader.offset
        yield _Piece(section.name, begin, end)


def _with_comments(text: str, end: int, start: int) -> int:
    """Return where the comments directly above ``start`` begin; the text before ``end`` belongs to others."""
    *lines, before = text[end:start].split("\n")
    if not lines and end:
        return start
    begin = start - len(before)
    while lines and lines[-1].lstrip().startswith("#"):
        begin -= len(lines.pop()) + 1
    return begin


def policy_only(present: Configuration, wanted: Configuration) -> Configuration:
    """Return ``wanted`` with the entities of ``present`` but for the policy and its vhosts; ConfigurationError.

    What else was changed in the file, and waits for a reload, goes on waiting.
    """
    if wanted.policy.policy_dir:
        message = "its vhosts would stay beside those of the network, so that the routers differ"
        cure = "remove policyDir from the file of this router"
        raise ConfigurationError([Problem(wanted.policy.place, message, _POLICY, "policyDir", suggestion=cure)])
    others = {field: getattr(present, field) for field, kind in HOLDS.items() if kind not in _OF_POLICY}
    return dataclasses.replace(wanted, **others)
