"""Asks every router of a network for what happened there lately, and brings the answers into one order.

Each router keeps its last changes of the network, refused logins and denials, and alarms, a hundred of each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import trio

from trouter.config.texts import MAX_WORKERS
from trouter.tools import formats
from trouter.tools.failures import MalformedAnswer
from trouter.tools.node import NodeClient

from .survey import AT_ONCE, FAILURES, RouterStatus, number_of, open_router, reason_of, rows_of, survey

#: Rows that each process of a router keeps of a table, and bytes of all that are read of one.
_ROWS: Final = 100
_BYTES: Final = 4 << 20
#: Characters of an event's text, most of which a stranger chose.
_TEXT: Final = 500
#: Lines of one change of the network; a router keeps no more.
_LINES: Final = 51
_OF_DENIAL: Final = ("count", "operation", "reason", "user", "host", "vhost", "rule", "about")
_OF_ALARM: Final = ("count", "alarm", "severity", "subject", "state", "value", "limit")


@dataclass(frozen=True, slots=True)
class RouterEvent:
    """Something that happened at a router. The texts are safe to show."""

    #: By the router's clock, in milliseconds since 1970: of what happened several times, that of the last time; of a
    #: change of the network, that of its beginning.
    at_ms: int
    router: str
    #: `network`, `login`, `denial` or `alarm`.
    kind: str
    text: str
    #: What the router said, by the attributes of its type.
    details: tuple[tuple[str, str | int], ...]
    #: Its place among what belongs to one change of the network.
    place: int = 0

    @property
    def order(self) -> tuple[int, str, str, int, str]:
        """What orders the events of a network."""
        return self.at_ms, self.router, self.kind, self.place, self.text

    def line(self) -> str:
        """Return the event as a line of a table."""
        return f"{formats.utc_of_ms(self.at_ms)}  {formats.plain(self.router)}  {self.kind:<7}  {self.text}"

    def json(self) -> dict[str, Any]:
        """Return the event as plain values."""
        fixed = {"at": self.at_ms, "router": self.router, "kind": self.kind, "text": self.text}
        return {**fixed, "details": dict(self.details)}


@dataclass(frozen=True, slots=True)
class EventsOfRouters:
    """The events of each router that answered, and why others did not."""

    by_router: Mapping[str, frozenset[RouterEvent]]
    faults: Mapping[str, str]


async def read_events(node: NodeClient) -> EventsOfRouters:
    """Return what happened at each router of the network lately; as ``survey``."""
    status = await survey(node)
    by_router: dict[str, frozenset[RouterEvent]] = {}
    faults = {router.id: router.fault for router in status.routers if router.fault}
    places = trio.CapacityLimiter(AT_ONCE)

    async def ask(router: RouterStatus) -> None:
        try:
            async with places, open_router(node, router.id, router.mode, status.workers) as other:
                by_router[router.id] = frozenset(await _events_at(other, router.id))
                if lack := other.take_incomplete():
                    faults[router.id] = lack
        except FAILURES as failure:
            faults[router.id] = reason_of(failure)

    async with trio.open_nursery() as nursery:
        for router in status.routers:
            if not router.fault:
                nursery.start_soon(ask, router)
    return EventsOfRouters(by_router, dict(sorted(faults.items())))


async def _events_at(node: NodeClient, router: str) -> list[RouterEvent]:
    """Return what a router kept of what happened there; any of FAILURES."""
    events = []
    for row in await rows_of(node, "topologyChange", ("began", "events"), _ROWS, _BYTES) or []:
        lines = row.get("events")
        for place, line in enumerate(lines[:_LINES] if isinstance(lines, list) else ()):
            events.append(RouterEvent(_time(row, "began"), router, "network", str(_shown(line)), (), place))
    limit = _ROWS * max(1, min(node.workers, MAX_WORKERS))
    for row in await rows_of(node, "denial", ("at", *_OF_DENIAL), limit, _BYTES) or []:
        details = _details(row, _OF_DENIAL)
        kind = "login" if details.get("operation") == "login" else "denial"
        events.append(
            RouterEvent(_time(row, "at"), router, kind, _text_of_denial(details)[:_TEXT], tuple(details.items()))
        )
    for row in await rows_of(node, "alarm", ("at", *_OF_ALARM), limit, _BYTES) or []:
        details = _details(row, _OF_ALARM)
        events.append(
            RouterEvent(_time(row, "at"), router, "alarm", _text_of_alarm(details)[:_TEXT], tuple(details.items()))
        )
    return events


def _time(row: Mapping[str, Any], name: str) -> int:
    at_ms = number_of(row, name)
    if at_ms is None:
        raise MalformedAnswer(f"an event has no {name}")
    return at_ms


def _details(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, str | int]:
    return {name: _shown(row[name]) for name in names if row.get(name) is not None}


def _shown(value: object) -> str | int:
    return value if isinstance(value, int) else formats.plain(value)[:_TEXT]


def _text_of_denial(details: Mapping[str, str | int]) -> str:
    found = defaultdict(str, details)
    vhost = f", vhost '{found['vhost']}'" if found["vhost"] else ""
    what = "refused" if found["operation"] == "login" else f"{found['operation']} denied"
    about = f" ({found['about']})" if found["about"] else ""
    why = f"{what}: {found['reason']}, by {found['rule']}{about}"
    return f"user '{found['user']}' from {found['host']}{vhost}: {why}{_times(found['count'])}"


def _text_of_alarm(details: Mapping[str, str | int]) -> str:
    found = defaultdict(str, details)
    value = f": {found['value']}" if found["value"] else ""
    limit = f" (limit {found['limit']})" if found["limit"] else ""
    text = f"{found['severity']} {found['alarm']} {found['state']}: {found['subject']}{value}{limit}"
    return f"{text}{_times(found['count'])}"


def _times(count: str | int) -> str:
    return f", {count} times" if count != 1 else ""
