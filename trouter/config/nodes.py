"""The nodes of a configuration text before any check of their meaning: sections, entries, values, places.

Large files have hundreds of thousands of them, so they are tuples, which are quickest to make.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from trouter.config.problems import SourcePosition

Plain = str | int | float | bool | None


class Scalar(NamedTuple):
    """Text or, in the JSON form, any JSON scalar; `quoted` distinguishes "1" from 1 in a map of the `.conf` form."""

    value: Plain
    place: SourcePosition
    quoted: bool = False


class Items(NamedTuple):
    """A list in square brackets."""

    items: tuple[Node, ...]
    place: SourcePosition


class Map(NamedTuple):
    """A nested map; keys may repeat, the last one wins."""

    entries: tuple[Entry, ...]
    place: SourcePosition


Node = Scalar | Items | Map


def is_null(node: Node) -> bool:
    """Return whether a value is JSON's null, which means that it was not given."""
    return isinstance(node, Scalar) and node.value is None


class Entry(NamedTuple):
    """`key: value` as written."""

    key: str
    place: SourcePosition
    node: Node


class Section(NamedTuple):
    """`name { entries }` as written."""

    name: str
    place: SourcePosition
    entries: tuple[Entry, ...]


def squash(name: str) -> str:
    """Return a name without hyphens, underscores and case, for comparing spellings."""
    return name.replace("-", "").replace("_", "").lower()


def literal(text: str) -> Plain:
    """Return the JSON number, truth value or null that `text` spells, or the text itself."""
    if text in {"true", "false", "null"}:
        return {"true": True, "false": False, "null": None}[text]
    if re.fullmatch(r"-?(?:0|[1-9][0-9]{0,18})", text):
        return int(text)
    if re.fullmatch(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", text):
        return float(text)
    return text
