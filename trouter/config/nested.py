"""Reads a map within an entity, checked against its own table of attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trouter.config.nodes import Entry, Map, is_null
from trouter.config.problems import nearest
from trouter.config.schema import Attribute, BadValue, BadValues, Doubt, EntityType
from trouter.config.values import as_written, convert, plain


@dataclass(slots=True)
class Nested:
    """The content of a map by the field of the attribute: the entries, the written texts, and the values."""

    given: dict[str, Entry] = field(default_factory=dict)
    written: dict[str, object] = field(default_factory=dict)
    values: dict[str, object] = field(default_factory=dict)


def read_nested(node: Map, table: EntityType, prefix: str, bad: list[BadValue]) -> Nested:
    """Return the content of a map; its problems go to `bad`, named by `prefix` and the key."""
    found = Nested()
    for entry in node.entries:
        row = None
        try:
            row = _row(entry, table, found.given)
            if not is_null(entry.node):
                found.given[row.field] = entry
                found.written[row.field], found.values[row.field] = convert(row, entry.node)
        except BadValues as wrong:
            key = f"{prefix}{entry.key}"
            bad += [BadValue(one.message, one.suggestion, place=one.place, key=f"{key}.{one.key}", text=one.text)
                    for one in wrong.bad]  # fmt: skip
        except BadValue as wrong:
            place, text = (wrong.place, "") if wrong.place else (entry.node.place, as_written(entry.node))
            key = f"{prefix}{entry.key}"
            if isinstance(wrong, Doubt):
                if row is not None:
                    found.written[row.field], found.values[row.field] = plain(entry.node), wrong.value
                bad.append(wrong.at(place, key, text))
            else:
                bad.append(BadValue(wrong.message, wrong.suggestion, place=place, key=key, text=text))
    return found


def _row(entry: Entry, table: EntityType, given: Mapping[str, Entry]) -> Attribute:
    """Return the attribute that an entry names."""
    if row := table.field_spelled(entry.key):
        if row.field in given:
            raise BadValue("given more than once", "leave one of them out", place=entry.place)
        return row
    names = [name for row in table.fields for name in (row.name, *row.old_names)]
    suggestion = nearest(entry.key, names) or f"one of {', '.join(names)}"
    if table.lenient:
        raise Doubt(table.lenient, None, "unknown attribute", suggestion, place=entry.place)
    raise BadValue("unknown attribute", suggestion, place=entry.place)
