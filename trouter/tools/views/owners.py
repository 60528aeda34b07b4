"""Who holds how much of the router's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trouter.tools import formats

from .model import Listing, Request, Row, Rows, View, attribute

OWNER_FIELDS = (
    attribute("owner", "name"),
    attribute("each", "size", formats.size),
    attribute("count", "count", formats.commas),
    attribute("total", "total", formats.size),
)
TOTAL_FIELDS = (attribute("VmSize", "memoryUsage", formats.size), attribute("Owned", "owned", formats.size))


def _owners(reply: object) -> Rows:
    """Return the reply to GET-MEMORY, an owner a row, with what it holds in all."""
    rows: list[Row] = []
    for owner in reply if isinstance(reply, list | tuple) else ():
        if not isinstance(owner, Mapping):
            continue
        size, count = owner.get("size"), owner.get("count")
        if isinstance(size, int) and isinstance(count, int):
            rows.append({"name": owner.get("name"), "size": size, "count": count, "total": size * count})
    return rows


def _total(row: Row) -> float:
    return formats.number(row.get("total")) or 0


def _listings(answers: Sequence[Rows]) -> list[Listing]:
    owners = sorted(answers[0], key=_total, reverse=True)
    usage = answers[1][0].get("memoryUsage") if answers[1] else None
    summary = {"memoryUsage": usage, "owned": sum(map(_total, owners))}
    return [
        Listing("Memory by Owner", OWNER_FIELDS, owners, key="name"),
        Listing("\nMemory Summary", TOTAL_FIELDS, [summary]),
    ]


OWNERS = View(
    "owners",
    ("--memory",),
    "show what of the router holds how much memory",
    (Request(operation="GET-MEMORY", rows=_owners), Request("router", ("memoryUsage",), optional=True)),
    _listings,
)
