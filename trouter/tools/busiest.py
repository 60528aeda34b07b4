"""The busiest links, addresses or connections of a router, by what their counters grew between two looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from . import formats
from .table import Grid, TableCell
from .views.lookup import address_class, address_text
from .words import PREFIX

if TYPE_CHECKING:
    from .node import NodeClient

Row = Mapping[str, Any]
#: The key of the rates of a row, by counter.
RATES: Final = "rates"


@dataclass(frozen=True, slots=True)
class Ranking:
    """One kind of things: what to request, how to make rows of the answers, and what to show of a row."""

    #: Types and their attributes.
    requests: tuple[tuple[str, tuple[str, ...]], ...]
    #: Makes rows, each with an identity and the counters.
    rows: Callable[[Sequence[Sequence[Row]]], Iterable[Row]]
    #: Counter -> the head of its rate.
    counters: Mapping[str, str]
    #: Head -> the cell of a row.
    cells: Mapping[str, Callable[[Row], object]]


def _cell(name: str) -> Callable[[Row], object]:
    return lambda row: row.get(name)


def _addresses(answers: Sequence[Sequence[Row]]) -> Iterable[Row]:
    return ({**row, "identity": row.get("name")} for row in answers[0])


def _connections(answers: Sequence[Sequence[Row]]) -> Iterable[Row]:
    """Return the connections, each with what went over its links."""
    sums: dict[tuple[str, str], int] = {}
    for link in answers[1]:
        place = (str(link.get("connectionId")), str(link.get("linkDir")))
        sums[place] = sums.get(place, 0) + int(formats.number(link.get("deliveryCount")) or 0)
    for row in answers[0]:
        identity = str(row.get("identity"))
        counts = {f"deliveries{way.capitalize()}": sums.get((identity, way), 0) for way in ("in", "out")}
        yield {**row, **counts}


_LINK: Final = ("identity", "connectionId", "linkDir", "owningAddr", "linkName", "deliveryCount")
_STATE: Final = ("undeliveredCount", "unsettledCount", "creditAvailable")
_CONNECTION: Final = ("identity", "host", "container", "role", "user")
_ADDRESS: Final = ("name", "deliveriesIngress", "deliveriesEgress", "subscriberCount", "remoteCount")

#: In the order of the help.
KINDS: Final = {
    "links": Ranking(
        ((f"{PREFIX}router.link", (*_LINK, *_STATE)),),
        lambda answers: answers[0],
        {"deliveryCount": "deliv"},
        {
            "dir": _cell("linkDir"),
            "class": lambda row: address_class(row.get("owningAddr")),
            "addr": lambda row: address_text(row.get("owningAddr")),
            "conn id": _cell("connectionId"),
            "id": _cell("identity"),
            "undel": _cell("undeliveredCount"),
            "unsett": _cell("unsettledCount"),
            "cred": _cell("creditAvailable"),
        },
    ),
    "addresses": Ranking(
        ((f"{PREFIX}router.address", _ADDRESS),),
        _addresses,
        {"deliveriesIngress": "in", "deliveriesEgress": "out"},
        {
            "class": lambda row: address_class(row.get("name")),
            "addr": lambda row: address_text(row.get("name")),
            "local": _cell("subscriberCount"),
            "remote": _cell("remoteCount"),
        },
    ),
    "connections": Ranking(
        (
            (f"{PREFIX}connection", _CONNECTION),
            (f"{PREFIX}router.link", ("connectionId", "linkDir", "deliveryCount")),
        ),
        _connections,
        {"deliveriesIn": "in", "deliveriesOut": "out"},
        {
            "id": _cell("identity"),
            "host": _cell("host"),
            "container": _cell("container"),
            "role": _cell("role"),
            "user": _cell("user"),
        },
    ),
}


class Busiest:
    """The rows of one kind, by their rates; each look is compared with the one before."""

    def __init__(self, kind: Ranking) -> None:
        self._kind = kind
        self._before: dict[str, Row] = {}
        self._before_s = 0.0

    async def look(self, node: NodeClient, now_s: Callable[[], float]) -> list[Row]:
        """Ask the router, and return the rows with their rates, the busiest first; none in the first look."""
        answers = [(await node.query(entity, names)).dicts() for entity, names in self._kind.requests]
        at_s = now_s()
        rows = {str(row.get("identity")): row for row in self._kind.rows(answers)}
        passed_s = at_s - self._before_s
        ranked: list[Row] = []
        for identity, row in rows.items():
            before = self._before.get(identity)
            if before is not None and passed_s > 0:
                rates = {name: self._rate(name, before, row, passed_s) for name in self._kind.counters}
                ranked.append({**row, RATES: rates})
        self._before, self._before_s = rows, at_s
        return sorted(ranked, key=lambda row: -sum(rate or 0 for rate in row[RATES].values()))

    def _rate(self, counter: str, before: Row, now: Row, passed_s: float) -> float | None:
        """Return the growth of a counter in a second; None if it is unknown, or began anew."""
        first, last = formats.number(before.get(counter)), formats.number(now.get(counter))
        return None if first is None or last is None or last < first else (last - first) / passed_s

    def grid(self, title: str, rows: Sequence[Row]) -> Grid:
        """Return rows as a table."""
        cells = [
            [
                *(TableCell(formats.rate(row[RATES][name])) for name in self._kind.counters),
                *(TableCell(formats.plain(show(row))) for show in self._kind.cells.values()),
            ]
            for row in rows
        ]
        return Grid(title, (*(f"{head}/s" for head in self._kind.counters.values()), *self._kind.cells), cells)
