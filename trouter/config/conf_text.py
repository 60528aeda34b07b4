"""Writes sections in the `.conf` form, also those that were read from the JSON form."""

from __future__ import annotations

import json

from trouter.config.nodes import Items, Map, Node, Scalar, Section, is_null
from trouter.config.values import as_written


def as_conf(section: Section) -> str:
    """Return a section in the `.conf` form."""
    lines = [f"    {entry.key}: {_value(entry.node, 1)}" for entry in section.entries if not is_null(entry.node)]
    return "\n".join([f"{section.name} {{", *lines, "}"])


def _value(node: Node, depth: int) -> str:
    """Return a value of a section, or (``depth`` above 1) of a map in it; JSON, but for a list of a section."""
    match node:
        case Scalar(value=value):
            return json.dumps(value, ensure_ascii=False)
        case Items(items=items) if depth > 1:
            return f"[{', '.join(_value(item, depth) for item in items)}]"
        case Items(items=items):
            return json.dumps(", ".join(as_written(item) for item in items), ensure_ascii=False)
        case Map(entries=entries):
            margin = "    " * depth
            lines = [
                f"{margin}    {json.dumps(entry.key, ensure_ascii=False)}: {_value(entry.node, depth + 1)}\n"
                for entry in entries
                if not is_null(entry.node)
            ]
            return f"{{\n{''.join(lines)}{margin}}}"
