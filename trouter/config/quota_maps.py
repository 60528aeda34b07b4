"""Parses the maps perUser and perHost: the quotas of each user or host."""

from __future__ import annotations

from trouter.config.entities.quotas import QUOTAS, Quotas
from trouter.config.nested import read_nested
from trouter.config.nodes import Map, Node
from trouter.config.schema import BadValue, BadValues


def parse_quotas(node: Node) -> Quotas:
    """Return the quotas in a map; BadValue if it is none, BadValues with all its problems."""
    if not isinstance(node, Map):
        raise BadValue("must be a map of quotas", "write: { maxLinks: 10 }")
    bad: list[BadValue] = []
    found = read_nested(node, QUOTAS, "", bad)
    if bad:
        raise BadValues(bad)
    return Quotas(**found.values)  # type: ignore[arg-type]
