"""The view of the router's latest log lines."""

from __future__ import annotations

from collections.abc import Sequence

from trouter.tools import formats

from .lookup import Lookup
from .model import Filter, Listing, Row, Rows, View, ViewRequest, attribute

_ENTRY = ("module", "level", "text", "file", "line", "time")
ENTRY_FIELDS = tuple(attribute(name, name) for name in ("time", "module", "level", "text", "file", "line"))


def _entries(reply: object) -> Rows:
    """Return the reply to GET-LOG, an entry a row."""
    entries = reply if isinstance(reply, list | tuple) else ()
    return [dict(zip(_ENTRY, entry, strict=False)) for entry in entries if isinstance(entry, list | tuple)]


def _line(row: Row) -> str:
    shown = [formats.plain(row.get(name)) for name in ("module", "level", "text")]
    return f"{formats.local_time(row.get('time'))} {shown[0]} ({shown[1]}) {shown[2]}"


def _log(answers: Sequence[Rows]) -> list[Listing]:
    return [Listing("Log", ENTRY_FIELDS, answers[0], empty="", line=_line, table="log")]


def _of_connection(row: Row, wanted: str, lookup: Lookup) -> bool:
    """Return whether the entry is about one of the connections, or about that number, of a connection that is gone."""
    text = str(row.get("text"))
    return any(f"[C{identity}]" in text for identity in (lookup.like(wanted) or {wanted}))


LOG = View(
    "log",
    ("--log",),
    "show recent log entries",
    (ViewRequest(operation="GET-LOG", rows=_entries, limited=True),),
    _log,
    dated=False,
    filters={"connection": Filter(_of_connection, connections=True)},
)
