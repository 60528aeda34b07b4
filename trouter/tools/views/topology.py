"""The view of the latest changes of the network."""

from __future__ import annotations

from collections.abc import Sequence

from trouter.columns.network import CHANGE

from .model import Listing, Row, Rows, View, ViewField, ViewRequest, attribute, fields_of

CHANGE_FIELDS = fields_of(
    CHANGE,
    (
        ViewField("change", lambda row: str(row.get("identity")).partition("/")[2]),
        "began", "took", "at rest", "moved", "in reach", "rounds", "cause", "why", "who",
    ),
)  # fmt: skip
EVENT_FIELDS = (attribute("change", "change"), attribute("event", "event"))


def _listings(answers: Sequence[Rows]) -> list[Listing]:
    """Return the changes, and the events of the last one."""
    changes = answers[0]
    nothing = "The network has not changed: it has no other router"
    listings = [Listing("Topology Changes", CHANGE_FIELDS, changes, empty=nothing, table="topologyChange")]
    if changes:
        listings.append(Listing("\nThe Last Change", EVENT_FIELDS, _events(changes[-1]), key="event"))
    return listings


def _events(change: Row) -> Rows:
    events = change.get("events")
    number = str(change.get("identity")).partition("/")[2]
    lines = events if isinstance(events, list | tuple) else ()
    return [{"change": number, "event": line} for line in lines]


TOPOLOGY = View(
    "topology",
    ("--topology",),
    "show how the network changed lately, why, and how long that took",
    (ViewRequest("topologyChange"),),
    _listings,
)
