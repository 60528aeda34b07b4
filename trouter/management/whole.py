"""The router as a whole, if it has several workers: each request is answered for all of them.

The worker that a request came to judges the requester, asks the others, and merges their answers (``merging.py``). A
worker that does not answer in time is missing in the answer, whose description names it.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import trio

from trouter.config.changes import Why
from trouter.config.schema import EntityType
from trouter.config.workers import FIRST
from trouter.net.workers import ANSWERED_WITHIN_S, MANAGE, Workers
from trouter.wire.codec import decode_all

from .arguments import ATTRIBUTE_NAMES, COUNT, IDENTITY, NAME, OFFSET, TYPE
from .cells import encode_row
from .combined import COMBINED, Answers
from .context import Node
from .directory import SCOPED
from .entities import entity_type_of, kind_to_create
from .kinds import descendants_of, is_node_type, kind_of
from .merging import has_parts, merged, merged_maps
from .operations import check_request, is_for_node, kind_named, perform
from .own import check_query
from .providers.parted import AT_ONE, PAST
from .providers.process import ROUTER_IDENTITY
from .query import MAX_ANSWER_BYTES
from .requests import Request
from .responses import OperationResult, answer, table
from .rights import Forbidden
from .sibling import CHANGED_WITHIN_S, cells_of, decode_result, encode_request, rows_of
from .status import BAD_REQUEST, NOT_FOUND, OK, REASONS, Refusal, bad_request, not_found

#: Requesters whose pages are continued; the one unused for longest is dropped first.
MAX_PAGED: Final = 32
_IDENTIFYING: Final = ("type", "identity")
#: The types whose entities are listed by time, and the column that has it.
_BY_TIME: Final = {"denial": "at"}
#: The types whose entities one worker after the other gets to know: their order must not change between two pages.
_BY_IDENTITY: Final = frozenset({"router.address"})
#: The operations on entities that another worker may have.
_ON_ENTITIES: Final = frozenset({"READ", "UPDATE", "DELETE", "CALLME"})
#: The operations that change the configuration, which the first worker does for all.
BY_FIRST: Final = frozenset({"CREATE", "UPDATE", "DELETE", "RELOAD"})

log = logging.getLogger("trouter.AGENT")


class Asking:
    """One request, which the workers answer; ``missing`` says of each that does not why."""

    def __init__(self, workers: Workers, node: Node, request: Request) -> None:
        self._workers = workers
        self._node = node
        self.request = request
        self.missing: dict[int, str] = {}

    async def ask(
        self, number: int, properties: Mapping[str, object] | None = None, names: list[str] | None = None
    ) -> OperationResult | None:
        """Return the answer of one worker, with other properties and columns if they are given; None if there is none.

        Refusal if this worker, or another one for want of rights, refuses.
        """
        request, node = self.request, self._node
        wanted = request.properties if properties is None else properties
        if number == self._workers.number:
            return await perform(node, _changed(request, wanted, names))
        tenant = "" if node.tenant is None else node.tenant.name
        octets = encode_request(request, node.rights(request), tenant, wanted, names, self._requester())
        changes = number == FIRST and request.operation in BY_FIRST
        limit_s = CHANGED_WITHIN_S if changes else ANSWERED_WITHIN_S
        try:
            given = decode_result(await self._workers.ask(number, MANAGE, octets, limit_s=limit_s))
        except OSError as error:
            self.missing[number] = str(error)
            return None
        if given.why is Why.RIGHTS:
            raise Forbidden
        return given

    async def ask_all(
        self, properties: Mapping[str, object] | None = None, names: list[str] | None = None, *, own: bool = True
    ) -> Answers:
        """Return the answers of all workers at the same time, of the others only without ``own``; Refusal."""
        found: Answers = {}
        refused: list[Refusal] = []

        async def ask(number: int) -> None:
            try:
                given = await self.ask(number, properties, names)
            except Refusal as refusal:
                refused.append(refusal)
            else:
                if given is not None:
                    found[number] = given

        async with trio.open_nursery() as nursery:
            for number in self._workers.ids:
                if own or number != self._workers.number:
                    nursery.start_soon(ask, number)
        if refused:
            raise refused[0]
        return dict(sorted(found.items()))

    async def ask_first(self) -> OperationResult:
        """Return the first worker's answer to a change that it makes for all; Refusal."""
        if self._workers.number == FIRST:
            return await perform_first(self._node, self.request, self._workers)
        given = await self.ask(FIRST)
        if given is None:
            why = self.missing.pop(FIRST)
            raise bad_request(f"it is not known to be changed: {self._workers.ids[FIRST]}, which changes it: {why}")
        return given

    def complete(self, result: OperationResult) -> OperationResult:
        """Return the result, whose description names the workers that are missing."""
        return _without(result, self.missing, self._workers)

    def _requester(self) -> Mapping[str, object]:
        """Return what records say of the requester's connection; nothing where nothing is changed."""
        if self.request.operation not in BY_FIRST:
            return {}
        connection = self._node.control.running.connections().get(self.request.origin)
        return {"conn": self.request.origin} if connection is None else connection.describe_connection()


class Whole:
    """The management node of a router with several workers, at one of them."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        #: By requester and query: the offset of its next page, the worker where it begins, and the offset in that one.
        self._pages: OrderedDict[tuple[str, ...], tuple[int, int, int]] = OrderedDict()

    async def perform(self, node: Node, request: Request) -> OperationResult:
        """Perform a request on the whole router; ``node`` is this worker as a part of it. Refusal."""
        operation = check_request(node, request)
        asking = Asking(self._workers, node, request)
        if operation == "QUERY":
            return asking.complete(await self._query(node, asking))
        if node.tenant is None and (operation == "RELOAD" or _is_create_for_all(operation, request)):
            return await asking.ask_first()
        if operation in _ON_ENTITIES and not (operation != "UPDATE" and is_for_node(request)):
            return asking.complete(await self._on_entity(node, asking, operation))
        combine = COMBINED.get(operation)
        if combine is not None and node.tenant is None and is_for_node(request):
            answers = await asking.ask_all()
            failed = next((each for each in answers.values() if each.status != OK), None)
            return asking.complete(failed or combine(answers, request))
        return await perform(node, request)

    # --- entities

    async def _on_entity(self, node: Node, asking: Asking, operation: str) -> OperationResult:
        """Perform an operation on an entity at the worker that has it, or at all that have their part of it."""
        request = asking.request
        kind = _kind_here(node, request)
        by_first = operation in BY_FIRST and node.tenant is None
        if by_first and kind is not None and kind.entity is not None:
            return await asking.ask_first()
        if kind is not None and has_parts(kind) and operation in ("READ", "DELETE"):
            return await self._on_parts(asking, kind, operation)
        is_once = kind is not None and kind.short not in AT_ONE
        if self._workers.number != FIRST and ((is_once and operation == "READ") or (by_first and kind is None)):
            given = await asking.ask(FIRST)
            if given is not None and not (kind is None and _is_absent(given)):
                return given
        refusal: Refusal | None = None
        try:
            return await perform(node, request)
        except Refusal as refused:
            if is_once or not _is_absent(refused):
                raise
            refusal = refused
        for number in self._workers.ids:
            given = await asking.ask(number) if number != self._workers.number else None
            if given is not None and not _is_absent(given):
                return given
        if asking.missing:
            return OperationResult(refusal.status, answer({}).body, refusal.description, refusal.why)
        raise refusal

    async def _on_parts(self, asking: Asking, kind: EntityType, operation: str) -> OperationResult:
        answers: Answers = {}
        absent: Refusal | None = None
        properties = self._for_any(kind, asking.request)
        try:
            own = await asking.ask(self._workers.number, properties)
            answers = {} if own is None else {self._workers.number: own}
        except Refusal as refused:
            if not _is_absent(refused):
                raise
            absent = refused
        answers |= await asking.ask_all(properties, own=False)
        done = [each for _, each in sorted(answers.items()) if not _is_absent(each)]
        if not done and absent is not None:
            raise absent
        failed = next((each for each in done if each.status >= BAD_REQUEST), None)
        if failed is not None or operation != "READ":
            return failed or done[0]
        maps = sorted(map(decode_all, (each.body for each in done)), key=_is_past)
        if maps and _is_past(maps[0]):
            raise absent or not_found(REASONS[NOT_FOUND])
        return answer(merged_maps(kind, maps))

    def _for_any(self, kind: EntityType, request: Request) -> Mapping[str, object]:
        """Return the properties of a request as every worker understands them: each names its router by another id."""
        first = self._workers.ids[FIRST]
        named = {NAME.read(request), IDENTITY.read(request)} & {first, f"router/{first}"}
        if kind.short != "router" or not named:
            return request.properties
        rest = {name: value for name, value in request.properties.items() if name != "name"}
        return {**rest, "type": kind.full_name, "identity": ROUTER_IDENTITY}

    # --- listings

    async def _query(self, node: Node, asking: Asking) -> OperationResult:
        request = asking.request
        kind = check_query(node, request)
        names = ATTRIBUTE_NAMES.read(request)
        node.queries.columns(kind, names)
        offset, count = OFFSET.read(request) or 0, max(COUNT.read(request) or 0, 0)
        if offset < 0:
            return await perform(node, request)
        if kind is not None and descendants_of(kind) == (kind,) and not has_parts(kind):
            if kind.short in _BY_TIME:
                return await self._list_by_time(node, asking, kind, offset, count)
            if kind.short in AT_ONE:
                return await self._list_in_turn(node, asking, kind, offset, count)
            first = await asking.ask(FIRST)
            return first if first is not None else await perform(node, request)
        return await self._list_merged(asking, kind, names, offset, count)

    async def _list_by_time(
        self, node: Node, asking: Asking, kind: EntityType, offset: int, count: int
    ) -> OperationResult:
        """List what happened, at whichever worker, the latest last."""
        names = ATTRIBUTE_NAMES.read(asking.request) or list(node.directory.columns_of(kind))
        answers = await asking.ask_all(_paged(asking.request, 0, 0), [*names, _BY_TIME[kind.short]])
        found = sorted((cells_of(row) for each in answers.values() for row in _rows(each)), key=lambda cells: cells[-1])
        shown = found[offset : offset + count] if count else found[offset:]
        return _bounded(names, [encode_row(cells[:-1]) for cells in shown])

    async def _list_in_turn(
        self, node: Node, asking: Asking, kind: EntityType, offset: int, count: int
    ) -> OperationResult:
        """List entities that live at one worker each: those of the first worker, then those of the next."""
        names = ATTRIBUTE_NAMES.read(asking.request) or list(node.directory.columns_of(kind))
        if count == 0:
            answers = await asking.ask_all(_paged(asking.request, 0, 0))
            return _bounded(names, [row for each in answers.values() for row in _rows(each)][offset:])
        who = (asking.request.reply_to, kind.short, str(hash(tuple(names))))
        places = list(self._workers.ids)
        found, at, inner = self._pages.get(who, (-1, 0, 0))
        skip = 0
        if found != offset:
            at, inner, skip = 0, 0, offset
        rows: list[bytes] = []
        while at < len(places) and len(rows) < count:
            wanted = count - len(rows) + skip
            given = await asking.ask(places[at], _paged(asking.request, inner, wanted))
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
        self, asking: Asking, kind: EntityType | None, names: list[str], offset: int, count: int
    ) -> OperationResult:
        """List entities of which each worker has a part; of those that are the same in all, the first worker's.

        Of all types (``kind`` is None), only those that have one of the columns ``names``.
        """
        asked = [*names, *(each for each in _IDENTIFYING if each not in names)] if names else None
        given_by = await asking.ask_all(_paged(asking.request, 0, 0), asked)
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
        found = [self._merge(columns, type_name, rows, shown) for (type_name, _), rows in _kept(by_entity, first)]
        return _bounded(columns[:shown], found[offset : offset + count] if count else found[offset:])

    def _merge(self, columns: list[str], type_name: str, rows: list[tuple[int, bytes]], shown: int) -> bytes:
        if len(rows) == 1 and shown == len(columns):
            return rows[0][1]
        cells = merged(kind_of(type_name), columns, [cells_of(row) for _, row in rows])
        return encode_row(cells[:shown])


_IN_A_ROW: Final = 100
_ROUTER: Final = "org.apache.qpid.dispatch.router"
_ADDRESS: Final = "org.apache.qpid.dispatch.router.address"


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


async def perform_first(node: Node, request: Request, workers: Workers) -> OperationResult:
    """Perform a change in the first worker; the description of the answer names the others that do not follow."""
    result = await perform(node, request)
    kind = kind_named(request)
    is_of_one = kind is not None and kind.short in AT_ONE
    return result if is_of_one else _without(result, node.control.behind, workers)


def _without(result: OperationResult, missing: Mapping[int, str], workers: Workers) -> OperationResult:
    """Return the result, whose description names the workers that are missing."""
    if not missing:
        return result
    why = "; ".join(f"{workers.ids[number]}: {text}" for number, text in sorted(missing.items()))
    log.warning("an answer of management lacks workers: %s", why)
    return replace(result, description=f"incomplete, workers are missing: {why}")


def _is_create_for_all(operation: str, request: Request) -> bool:
    """Return whether a request creates what all workers have; link routes of a connection are its worker's; Refusal."""
    return operation == "CREATE" and kind_to_create(request, request.new_attributes()).short != SCOPED


def _changed(request: Request, properties: Mapping[str, object], names: list[str] | None) -> Request:
    """Return a request with other properties, and other columns instead of its body."""
    if properties is request.properties and names is None:
        return request
    changed = Request()
    changed.reply_to, changed.origin, changed.granted = request.reply_to, request.origin, request.granted
    changed.correlation_id = request.correlation_id
    changed.properties = properties
    changed.body = request.body if names is None else {"attributeNames": names}
    return changed


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


def _is_past(attributes: Mapping[str, Any]) -> bool:
    """Return whether a worker has only the counts of an address, because its clients use that no more."""
    return attributes.get("type") == PAST


def _is_absent(given: OperationResult | Refusal) -> bool:
    """Return whether a worker does not have the entity."""
    return given.why is Why.ABSENT  # not by the status: an UPDATE of a connection has another one


def _kind_here(node: Node, request: Request) -> EntityType | None:
    """Return the type of the entity that a request names, if the request or this worker knows it."""
    named = kind_named(request)
    if named is not None and descendants_of(named) == (named,) and not is_node_type(named.short):
        return named
    name, identity = NAME.read(request), IDENTITY.read(request)
    try:
        return node.directory.find(
            named if entity_type_of(request) or TYPE.read(request) else None, name, identity
        ).kind
    except Refusal:
        return None
