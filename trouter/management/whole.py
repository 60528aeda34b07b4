"""The router as a whole, if it has several workers: each request is answered for all of them.

The worker that a request came to judges the requester, asks the others (``to_workers.py``), and merges their answers
(``merging.py``, and ``listings.py`` for a QUERY). A worker that does not answer in time is missing in the answer, whose
description names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trouter.config.changes import Why
from trouter.config.schema import EntityType
from trouter.config.workers import FIRST
from trouter.net.workers import Workers
from trouter.wire.codec import decode_all

from .arguments import IDENTITY, NAME, TYPE
from .combined import COMBINED, Answers
from .context import Node
from .directory import SCOPED
from .entities import entity_type_of, kind_to_create
from .kinds import descendants_of, is_node_type
from .listings import Listings
from .merging import has_parts, merged_maps
from .operations import check_request, is_for_node, kind_named, perform
from .own import check_change
from .providers.parted import AT_ONE, PAST
from .providers.process import ROUTER_IDENTITY
from .requests import Request
from .responses import OperationResult, answer
from .status import BAD_REQUEST, NOT_FOUND, OK, REASONS, Refusal, not_found
from .to_workers import BY_FIRST, CHANGE_STEPS, ON_FILE, RequestToWorkers

#: The operations on entities that another worker may have.
_ON_ENTITIES: Final = frozenset({"READ", "UPDATE", "DELETE", "CALLME"})


class AllWorkers:
    """The management node of a router with several workers, at one of them."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._listings = Listings(workers)

    async def perform(self, node: Node, request: Request) -> OperationResult:
        """Perform a request on the whole router; ``node`` is this worker as a part of it. Refusal."""
        operation = check_request(node, request)
        to_workers = RequestToWorkers(self._workers, node, request)
        if operation == "QUERY":
            return to_workers.complete(await self._listings.query(node, to_workers))
        on_file = operation in ON_FILE and is_for_node(request)
        if node.tenant is None and (on_file or _is_create_for_all(operation, request)):
            if operation in CHANGE_STEPS:
                check_change(node, request)
            return await to_workers.ask_first()
        if operation in _ON_ENTITIES and not (operation != "UPDATE" and is_for_node(request)):
            return to_workers.complete(await self._on_entity(node, to_workers, operation))
        combine = COMBINED.get(operation)
        if combine is not None and node.tenant is None and is_for_node(request):
            answers = await to_workers.ask_all()
            failed = next((each for each in answers.values() if each.status != OK), None)
            return to_workers.complete(failed or combine(answers, request))
        return await perform(node, request)

    # --- entities

    async def _on_entity(self, node: Node, to_workers: RequestToWorkers, operation: str) -> OperationResult:
        """Perform an operation on an entity at the worker that has it, or at all that have their part of it."""
        request = to_workers.request
        kind = _kind_here(node, request)
        by_first = operation in BY_FIRST and node.tenant is None
        if by_first and kind is not None and kind.entity is not None:
            return await to_workers.ask_first()
        if kind is not None and has_parts(kind) and operation in ("READ", "DELETE"):
            return await self._on_parts(to_workers, kind, operation)
        is_once = kind is not None and kind.short not in AT_ONE
        if self._workers.number != FIRST and ((is_once and operation == "READ") or (by_first and kind is None)):
            given = await to_workers.ask(FIRST)
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
            given = await to_workers.ask(number) if number != self._workers.number else None
            if given is not None and not _is_absent(given):
                return given
        if to_workers.missing:
            return OperationResult(refusal.status, answer({}).body, refusal.description, refusal.why)
        raise refusal

    async def _on_parts(self, to_workers: RequestToWorkers, kind: EntityType, operation: str) -> OperationResult:
        answers: Answers = {}
        absent: Refusal | None = None
        properties = self._for_any(kind, to_workers.request)
        try:
            own = await to_workers.ask(self._workers.number, properties)
            answers = {} if own is None else {self._workers.number: own}
        except Refusal as refused:
            if not _is_absent(refused):
                raise
            absent = refused
        answers |= await to_workers.ask_all(properties, own=False)
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


def _is_create_for_all(operation: str, request: Request) -> bool:
    """Return whether a request creates what all workers have; link routes of a connection are its worker's; Refusal."""
    return operation == "CREATE" and kind_to_create(request, request.new_attributes()).short != SCOPED


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
