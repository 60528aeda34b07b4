"""The memory of the router by connection, user, vhost and address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from trouter.tools import formats

from .model import Listing, Row, Rows, View, ViewField, ViewRequest, attribute

OWNER_FIELDS = (
    attribute("owner", "name"),
    attribute("each", "size", formats.size),
    attribute("count", "count", formats.commas),
    attribute("total", "total", formats.size),
)
_TOTAL = attribute("total", "bytes", formats.size)
_TAKEN = (
    attribute("sessions", "sessions", formats.commas),
    attribute("links", "links", formats.commas),
    attribute("messages", "messages", formats.size),
    attribute("kept", "kept", formats.size, needs=True),
    attribute("output", "output", formats.size),
    _TOTAL,
)
_USERS = (attribute("user", "user"), attribute("vhost", "vhost"))


def _first(head: str) -> ViewField:
    """Return the column with the name of a row, or with the number of others that it sums up."""
    return ViewField(head, lambda row: f"{row['others']} others" if row.get("others") else row.get(head))


#: Group of GET-MEMORY, title of its listing, and columns.
GROUPS = (
    ("connection", "Memory by Connection", (_first("connection"), attribute("host", "host"), *_USERS, *_TAKEN)),
    ("user", "Memory by User", (_first("user"), _USERS[1], attribute("connections", "connections"), *_TAKEN)),
    ("vhost", "Memory by Vhost", (_first("vhost"), attribute("connections", "connections"), *_TAKEN)),
    (
        "address",
        "Memory by Address",
        (
            _first("address"),
            attribute("links", "links", formats.commas),
            attribute("waiting", "messages", formats.commas),
            _TOTAL,
        ),
    ),
)
TOTAL_FIELDS = (
    attribute("VmSize", "memoryUsage", formats.size),
    attribute("Resident", "resident", formats.size, needs=True),
    attribute("Limit", "limit", formats.size, needs=True),
    attribute("Messages", "messages", formats.size, needs=True),
    attribute("Messages Limit", "messagesLimit", formats.size, needs=True),
    attribute("Owned", "owned", formats.size),
)


def _owners(reply: object) -> Rows:
    """Return the reply to GET-MEMORY, an owner a row, with what it holds in all."""
    rows: list[Row] = []
    for owner in _maps(reply):
        size, count = owner.get("size"), owner.get("count")
        if isinstance(size, int) and isinstance(count, int):
            rows.append({"name": owner.get("name"), "size": size, "count": count, "total": size * count})
    return rows


def _groups(key: str, reply: object) -> Rows:
    """Return the rows of GET-MEMORY ``by`` something; an earlier release answers with owners without ``key``."""
    return [row for row in _maps(reply) if key in row]


def _maps(reply: object) -> list[Mapping[str, object]]:
    return [each for each in reply if isinstance(each, Mapping)] if isinstance(reply, list | tuple) else []


def _by(what: str, key: str) -> ViewRequest:
    return ViewRequest(operation="GET-MEMORY", properties={"by": what}, rows=partial(_groups, key), optional=True)


def _total(row: Row) -> float:
    return formats.number(row.get("total")) or 0


def _listings(answers: Sequence[Rows]) -> list[Listing]:
    owned, routers, process, *grouped = answers
    owners = sorted(owned, key=_total, reverse=True)
    usage = routers[0].get("memoryUsage") if routers else None
    summary = {"memoryUsage": usage, **(process[0] if process else {}), "owned": sum(map(_total, owners))}
    return [
        Listing("Memory by Owner", OWNER_FIELDS, owners, key="name", table="memory.owner"),
        *(
            Listing(f"\n{title}", fields, rows, key=by, table=f"memory.{by}")
            for (by, title, fields), rows in zip(GROUPS, grouped, strict=True)
            if rows
        ),
        Listing("\nMemory Summary", TOTAL_FIELDS, [summary], table="memory"),
    ]


OWNERS = View(
    "owners",
    ("--memory",),
    "show where the router's memory is: by kind of object, connection, user, vhost and address",
    (
        ViewRequest(operation="GET-MEMORY", rows=_owners),
        ViewRequest("router", ("memoryUsage",), optional=True),
        _by("process", "limit"),
        *(_by(by, by) for by, _, _ in GROUPS),
    ),
    _listings,
)
