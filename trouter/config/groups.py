"""The map of groups within a vhost: each a map of its own, held to the table of group settings."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from trouter.config.entities.group import GROUP_SETTINGS, GroupSettings
from trouter.config.nodes import Entry, Map, Node, is_null
from trouter.config.problems import Place, nearest
from trouter.config.schema import Attribute, BadValue, BadValues
from trouter.config.values import as_written, convert

#: Of each pair only one may be given.
EXCLUSIVE: Final = (("sources", "source_pattern"), ("targets", "target_pattern"))


def parse_groups(node: Node) -> Mapping[str, GroupSettings]:
    """The groups in a map of maps; BadValues with everything that is wrong with them."""
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
        raise BadValues(bad)
    return MappingProxyType(groups)


def _group(entry: Entry, bad: list[BadValue]) -> GroupSettings:
    """One group; what is wrong with it goes to `bad`."""
    if not isinstance(entry.node, Map):
        bad.append(BadValue("a group must be a map", "write: name: { users: ... }", place=entry.place, key=entry.key))
        return GroupSettings()
    given: dict[str, Entry] = {}
    values: dict[str, object] = {}
    written: dict[str, object] = {}
    for setting in entry.node.entries:
        try:
            row = _row(setting, given)
            if not is_null(setting.node):
                given[row.field] = setting
                written[row.field], values[row.field] = convert(row, setting.node)
        except BadValue as wrong:
            place, text = (wrong.place, "") if wrong.place else (setting.node.place, as_written(setting.node))
            key = f"{entry.key}.{setting.key}"
            bad.append(BadValue(wrong.message, wrong.suggestion, place=place, key=key, text=text))
    for first, second in EXCLUSIVE:
        if first in given and second in given:
            names = f"'{given[first].key}' and '{given[second].key}'"
            message = f"{names} cannot both be given"
            key = f"{entry.key}.{given[second].key}"
            bad.append(BadValue(message, "leave one of them out", place=given[second].place, key=key))
    return GroupSettings(**values, written=MappingProxyType(written))  # type: ignore[arg-type]


def _row(setting: Entry, given: Mapping[str, Entry]) -> Attribute:
    """The attribute that an entry names."""
    if row := GROUP_SETTINGS.field_spelled(setting.key):
        if row.field in given:
            raise BadValue("given more than once", "leave one of them out", place=setting.place)
        return row
    names = [name for row in GROUP_SETTINGS.fields for name in (row.name, *row.old_names)]
    raise BadValue(
        "unknown attribute", nearest(setting.key, names) or f"one of {', '.join(names)}", place=setting.place
    )


def _users_twice(groups: Mapping[str, GroupSettings], places: Mapping[str, Place]) -> list[BadValue]:
    """A user belongs to one group."""
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
