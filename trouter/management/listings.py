"""Listings of a router with several workers, from those of each of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

import trio

from trouter.config.schema import EntityType
from trouter.config.workers import FIRST
from trouter.net.workers import Workers

from .arguments import ATTRIBUTE_NAMES, COUNT, OFFSET
from .cells import encode_row
from .context import Node
from .kinds import descendants_of, kind_of
from .merging import has_parts, merged
from .operations import perform
from .own import check_query
from .providers.parted import AT_ONE, PAST
from .query import MAX_ANSWER_BYTES
from .requests import Request
from .responses import OperationResult, table
from .sibling import cells_of, rows_of
from .status import OK, bad_request
from .to_workers import RequestToWorkers

#: Requesters whose pages are continued; the one unused for longest is dropped first.
MAX_PAGED: Final = 32
#: No router has more rows; the sum of two such numbers is still a long of AMQP.
_MOST_ROWS: Final = 2**31
_IDENTIFYING: Final = ("type", "identity")
#: The types whose entities are listed by time, and the column that has it.
_BY_TIME: Final = {"denial": "at", "alarm": "at"}
#: The types whose entities one worker after the other gets to know: their order must not change between two pages.
_BY_IDENTITY: Final = frozenset({"router.address"})
#: Rows merged before other tasks get their turn.
_IN_A_ROW: Final = 100
_ROUTER: Final = "org.apache.qpid.dispatch.router"
_ADDRESS: Final = "org.apache.qpid.dispatch.router.address"


class Listings:
    """The answers to a QUERY of all workers, at one of them, and the pages that requesters have read."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        #: By requester and query: the offset of its next page, the worker where it begins, and the offset in that one.
        self._pages: OrderedDict[tuple[str, ...], tuple[int, int, int]] = OrderedDict()

    async def query(self, node: Node, to_workers: RequestToWorkers) -> OperationResult:
        """Return the rows of all workers that a request wants; Refusal."""
        request = to_workers.request
        kind = check_query(node, request)
        names = ATTRIBUTE_NAMES.read(request)
        node.queries.columns(kind, names)
        offset, count = min(OFFSET.read(request) or 0, _MOST_ROWS), min(max(COUNT.read(request) or 0, 0), _MOST_ROWS)
        if offset < 0:
            return await perform(node, request)
        if kind is not None and descendants_of(kind) == (kind,) and not has_parts(kind):
            if kind.short in _BY_TIME:
                return await self._list_by_time(node, to_workers, kind, offset, count)
            if kind.short in AT_ONE:
                return await self._list_in_turn(node, to_workers, kind, offset, count)
            first = await to_workers.ask(FIRST)
            return first if first is not None else await perform(node, request)
        return await self._list_merged(to_workers, kind, names, offset, count)

    async def _list_by_time(
        self, node: Node, to_workers: RequestToWorkers, kind: EntityType, offset: int, count: int
    ) -> OperationResult:
        """List what happened, at whichever worker, the latest last."""
        names = ATTRIBUTE_NAMES.read(to_workers.request) or list(node.directory.columns_of(kind))
        answers = await to_workers.ask_all(_paged(to_workers.request, 0, 0), [*names, _BY_TIME[kind.short]])
        cells = sorted((cells_of(row) for one in answers.values() for row in _rows(one)), key=lambda each: each[-1])
        shown = cells[offset : offset + count] if count else cells[offset:]
        return _bounded(names, [encode_row(each[:-1]) for each in shown])

    async def _list_in_turn(
        self, node: Node, to_workers: RequestToWorkers, kind: EntityType, offset: int, count: int
    ) -> OperationResult:
        """List entities that live at one worker each: those of the first worker, then those of the next."""
        names = ATTRIBUTE_NAMES.read(to_workers.request) or list(node.directory.columns_of(kind))
        if count == 0:
            answers = await to_workers.ask_all(_paged(to_workers.request, 0, 0))
            return _bounded(names, [row for each in answers.values() for row in _rows(each)][offset:])
        who = (to_workers.request.reply_to, kind.short, str(hash(tuple(names))))
        places = list(self._workers.ids)
        next_offset, at, inner = self._pages.get(who, (-1, 0, 0))
        skip = 0
        if next_offset != offset:
            at, inner, skip = 0, 0, offset
        rows: list[bytes] = []
        while at < len(places) and len(rows) < count:
            wanted = count - len(rows) + skip
            given = await to_workers.ask(places[at], _paged(to_workers.request, inner, wanted))
            got = [] if given is None else _rows(given)
            inner += len(got)
            rows += got[skip:]
            skip = max(skip - len(got), 0)
            if len(got) < wanted:
                at, inner = at + 1, 0
        self._turn_page(who, (offset + count, at, inner) if at < len(places) else None)
        return _bounded(names, rows)

    def _turn_page(self, who: tuple[str, ...], following: tuple[int, int, int] | None) -> None:
        """Note where the next page of a requester begins; None after the last."""
        self._pages.pop(who, None)
        if following is not None:
            self._pages[who] = following
            if len(self._pages) > MAX_PAGED:
                self._pages.popitem(last=False)

    async def _list_merged(
        self, to_workers: RequestToWorkers, kind: EntityType | None, names: list[str], offset: int, count: int
    ) -> OperationResult:
        """List entities of which each worker has a part; of those that are the same in all, the first worker's.

        Of all types (``kind`` is None), only those that have one of the columns ``names``.
        """
        asked = [*names, *(each for each in _IDENTIFYING if each not in names)] if names else None
        given_by = await to_workers.ask_all(_paged(to_workers.request, 0, 0), asked)
        answers = {number: given for number, given in given_by.items() if given.status == OK}
        columns = asked or []
        by_entity: dict[tuple[str, str], list[tuple[int, bytes]]] = {}
        past: dict[str, list[tuple[int, bytes]]] = {}
        for number, given in answers.items():
            columns, rows = rows_of(given.body)
            places = [columns.index(each) for each in _IDENTIFYING]
            for index, row in enumerate(rows):
                cells = cells_of(row)
                type_name, identity = (str(cells[place]) for place in places)
                if type_name == _ROUTER:  # each worker has an identity of its own
                    identity = ""
                if type_name == PAST:
                    past.setdefault(identity, []).append((number, row))
                elif kind is not None or not names or any(cell is not None for cell in cells[: len(names)]):
                    by_entity.setdefault((type_name, identity), []).append((number, row))
                if index % _IN_A_ROW == _IN_A_ROW - 1:
                    await trio.lowlevel.checkpoint()
        for identity, left in past.items():
            if live := by_entity.get((_ADDRESS, identity)):
                live += left
        if kind is not None and kind.short in _BY_IDENTITY:
            by_entity = dict(sorted(by_entity.items()))
        shown = len(names) or len(columns)
        first = next(iter(answers), FIRST)
        merged_rows = [self._merge(columns, type_name, rows, shown) for (type_name, _), rows in _kept(by_entity, first)]
        return _bounded(columns[:shown], merged_rows[offset : offset + count] if count else merged_rows[offset:])

    def _merge(self, columns: list[str], type_name: str, rows: list[tuple[int, bytes]], shown: int) -> bytes:
        if len(rows) == 1 and shown == len(columns):
            return rows[0][1]
        cells = merged(kind_of(type_name), columns, [cells_of(row) for _, row in rows])
        return encode_row(cells[:shown])


def _kept(
    by_entity: dict[tuple[str, str], list[tuple[int, bytes]]], first: int
) -> Iterable[tuple[tuple[str, str], list[tuple[int, bytes]]]]:
    """Yield the entities with their rows: of those without parts only what the ``first`` worker has."""
    for (type_name, identity), rows in by_entity.items():
        kind = kind_of(type_name)
        if kind.short in AT_ONE or has_parts(kind):
            yield (type_name, identity), rows
        elif rows[0][0] == first:
            yield (type_name, identity), rows[:1]


def _paged(request: Request, offset: int, count: int) -> dict[str, object]:
    return {**request.properties, "offset": offset, "count": count}


def _rows(given: OperationResult) -> list[bytes]:
    """Return the rows of an answer; none if the worker does not know the requester's tenant."""
    return rows_of(given.body)[1] if given.status == OK else []


def _bounded(names: Sequence[str], rows: Sequence[bytes]) -> OperationResult:
    if sum(map(len, rows)) > MAX_ANSWER_BYTES:
        raise bad_request(
            f"the answer would have more than {MAX_ANSWER_BYTES} bytes: "
            "ask for fewer attributes, or for pages with offset and count"
        )
    return table(names, rows)
