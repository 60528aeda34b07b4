"""Parses the map of groups within a vhost: each is a map, checked against the table of group settings."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from trouter.config.entities.group import GROUP_SETTINGS, GroupSettings
from trouter.config.nested import read_nested
from trouter.config.nodes import Entry, Map, Node, is_null
from trouter.config.problems import SourcePosition
from trouter.config.schema import BadValue, BadValues

#: Of each pair only one may be given.
EXCLUSIVE: Final = (("sources", "source_pattern"), ("targets", "target_pattern"))


def parse_groups(node: Node) -> Mapping[str, GroupSettings]:
    """Return the groups in a map of maps; BadValue if it is none, BadValues with all its problems."""
    if not isinstance(node, Map):
        raise BadValue("must be a map of groups", "write: groups: { name: { users: ... } }")
    bad: list[BadValue] = []
    groups: dict[str, GroupSettings] = {}
    for entry in node.entries:
        if entry.key in groups:
            bad.append(
                BadValue(
                    "there is a group of this name already", "make one of the two", place=entry.place, key=entry.key
                )
            )
        elif not is_null(entry.node):
            groups[entry.key] = _group(entry, bad)
    bad += _users_twice(groups, {entry.key: entry.place for entry in node.entries})
    if bad:
        raise BadValues(bad, MappingProxyType(groups))
    return MappingProxyType(groups)


def _group(entry: Entry, bad: list[BadValue]) -> GroupSettings:
    """Return one group; its problems go to `bad`."""
    if not isinstance(entry.node, Map):
        bad.append(BadValue("a group must be a map", "write: name: { users: ... }", place=entry.place, key=entry.key))
        return GroupSettings()
    found = read_nested(entry.node, GROUP_SETTINGS, f"{entry.key}.", bad)
    given = found.given
    for first, second in EXCLUSIVE:
        if first in given and second in given:
            names = f"'{given[first].key}' and '{given[second].key}'"
            message = f"{names} cannot both be given"
            key = f"{entry.key}.{given[second].key}"
            bad.append(BadValue(message, "leave one of them out", place=given[second].place, key=key))
    return GroupSettings(**found.values, written=MappingProxyType(found.written))  # type: ignore[arg-type]


def _users_twice(groups: Mapping[str, GroupSettings], places: Mapping[str, SourcePosition]) -> list[BadValue]:
    """Return a problem for each user that is in two groups."""
    first: dict[str, str] = {}
    return [
        BadValue(
            f"the user '{user}' is in the group '{first[user]}' already",
            "leave the user in one of them",
            place=places[name],
            key=name,
        )
        for name, group in groups.items()
        for user in group.users
        if first.setdefault(user, name) != name
    ]
