"""The busiest links, addresses, connections or workers of a router, by what their counters grew between two looks."""

from __future__ import annotations

from collections import Counter
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
#: The attribute with the number of the worker, which rows of these types have if the router has several workers.
_WORKER: Final = "worker"
_OF_WORKERS: Final = frozenset({f"{PREFIX}router.link", f"{PREFIX}connection"})
#: What goes by a connection or a worker, as the sum of its links.
_WAYS: Final = {"deliveriesIn": "in", "deliveriesOut": "out"}
#: The key of the rates of a row, by counter.
RATES: Final = "rates"


class WorkerTotals:
    """What went over the links of each worker; it stays when a link is gone."""

    def __init__(self) -> None:
        #: The number of workers; 1 for a router of one process.
        self.workers = 1
        self._of_links: dict[str, int] = {}
        self._totals: dict[tuple[int, str], int] = {}

    def add(self, links: Sequence[Row]) -> Mapping[tuple[int, str], int]:
        """Add what went over links since the last call; return the sums by worker and direction."""
        before, self._of_links = self._of_links, {}
        for link in links:
            identity, count = str(link.get("identity")), _deliveries(link)
            self._of_links[identity] = count
            place = (link.get(_WORKER, 1), str(link.get("linkDir")))
            self._totals[place] = self._totals.get(place, 0) + max(count - before.get(identity, 0), 0)
        return self._totals


@dataclass(frozen=True, slots=True)
class Ranking:
    """One kind of things: what to request, how to make rows of the answers, and what to show of a row."""

    #: Types and their attributes.
    requests: tuple[tuple[str, tuple[str, ...]], ...]
    #: Makes rows, each with an identity and the counters.
    rows: Callable[[Sequence[Sequence[Row]], WorkerTotals], Iterable[Row]]
    #: Counter -> the head of its rate.
    counters: Mapping[str, str]
    #: Head -> the cell of a row.
    cells: Mapping[str, Callable[[Row], object]]


def _cell(name: str) -> Callable[[Row], object]:
    return lambda row: row.get(name)


def _deliveries(link: Row) -> int:
    return int(formats.number(link.get("deliveryCount")) or 0)


def _first(answers: Sequence[Sequence[Row]], _: WorkerTotals) -> Iterable[Row]:
    return answers[0]


def _addresses(answers: Sequence[Sequence[Row]], _: WorkerTotals) -> Iterable[Row]:
    return ({**row, "identity": row.get("name")} for row in answers[0])


def _connections(answers: Sequence[Sequence[Row]], _: WorkerTotals) -> Iterable[Row]:
    """Return the connections, each with what went over its links."""
    sums: dict[tuple[str, str], int] = {}
    for link in answers[1]:
        place = (str(link.get("connectionId")), str(link.get("linkDir")))
        sums[place] = sums.get(place, 0) + _deliveries(link)
    for row in answers[0]:
        identity = str(row.get("identity"))
        yield {**row, **{name: sums.get((identity, way), 0) for name, way in _WAYS.items()}}


def _workers(answers: Sequence[Sequence[Row]], totals: WorkerTotals) -> Iterable[Row]:
    """Return the workers, each with what it has and what went over its links; a router of one process is worker 1."""
    connections, links = (Counter(row.get(_WORKER, 1) for row in rows) for rows in answers)
    sums = totals.add(answers[1])
    for number in range(1, totals.workers + 1):
        yield {
            "identity": str(number),
            _WORKER: number,
            "connectionCount": connections[number],
            "linkCount": links[number],
            **{name: sums.get((number, way), 0) for name, way in _WAYS.items()},
        }


_LOAD: Final = ("identity", "connectionId", "linkDir", "deliveryCount")
_LINK: Final = ("identity", "connectionId", "linkDir", "owningAddr", "linkName", "deliveryCount")
_STATE: Final = ("undeliveredCount", "unsettledCount", "creditAvailable")
_CONNECTION: Final = ("identity", "host", "container", "role", "user")
_ADDRESS: Final = ("name", "deliveriesIngress", "deliveriesEgress", "subscriberCount", "remoteCount")

#: In the order of the help.
KINDS: Final = {
    "links": Ranking(
        ((f"{PREFIX}router.link", (*_LINK, *_STATE)),),
        _first,
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
            _WORKER: _cell(_WORKER),
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
        ((f"{PREFIX}connection", _CONNECTION), (f"{PREFIX}router.link", _LOAD)),
        _connections,
        _WAYS,
        {
            "id": _cell("identity"),
            "host": _cell("host"),
            "container": _cell("container"),
            "role": _cell("role"),
            "user": _cell("user"),
            _WORKER: _cell(_WORKER),
        },
    ),
    "workers": Ranking(
        ((f"{PREFIX}connection", ("identity",)), (f"{PREFIX}router.link", _LOAD)),
        _workers,
        _WAYS,
        {
            _WORKER: _cell(_WORKER),
            "connections": _cell("connectionCount"),
            "links": _cell("linkCount"),
        },
    ),
}


class Busiest:
    """The rows of one kind, by their rates; each look is compared with the one before."""

    def __init__(self, kind: Ranking) -> None:
        self._kind = kind
        self._totals = WorkerTotals()
        self._before: dict[str, Row] = {}
        self._before_s = 0.0

    async def look(self, node: NodeClient, now_s: Callable[[], float]) -> list[Row]:
        """Ask the router, and return the rows with their rates, the busiest first; none in the first look."""
        answers = []
        for entity, names in self._kind.requests:
            at_worker = node.workers and entity in _OF_WORKERS
            answers.append((await node.query(entity, (*names, _WORKER) if at_worker else names)).dicts())
        at_s = now_s()
        self._totals.workers = max(node.workers, 1)
        rows = {str(row.get("identity")): row for row in self._kind.rows(answers, self._totals)}
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
        """Return rows as a table; the column of workers is there if they have some."""
        shown = {
            head: show
            for head, show in self._kind.cells.items()
            if head != _WORKER or any(_WORKER in row for row in rows)
        }
        cells = [
            [
                *(TableCell(formats.rate(row[RATES][name])) for name in self._kind.counters),
                *(TableCell(formats.plain(show(row))) for show in shown.values()),
            ]
            for row in rows
        ]
        return Grid(title, (*(f"{head}/s" for head in self._kind.counters.values()), *shown), cells)
