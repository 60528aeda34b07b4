"""One request on its way to the workers of a router: who answers it, and who is missing."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import trio

from trouter.config.changes import Why
from trouter.config.workers import FIRST
from trouter.net.workers import ANSWERED_WITHIN_S, MANAGE, CallFailed, Workers

from .combined import Answers
from .context import Node
from .operations import kind_named, perform
from .providers.parted import AT_ONE
from .requests import Request
from .responses import OperationResult
from .rights import Forbidden
from .sibling import CHANGED_WITHIN_S, decode_result, encode_request
from .status import Refusal, bad_request

#: The steps of a change that comes over the network.
CHANGE_STEPS: Final = frozenset({"APPLY", "CONFIRM-CHANGE", "REVERT-CHANGE"})
#: The operations on the node that the first worker, which has the configuration, does for all.
ON_FILE: Final = frozenset({"RELOAD", "CHECK", "GET-CHANGE", *CHANGE_STEPS})
#: The operations that only the first worker does.
BY_FIRST: Final = frozenset({"CREATE", "UPDATE", "DELETE", *ON_FILE})

log = logging.getLogger("trouter.AGENT")


class RequestToWorkers:
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
        except CallFailed as error:
            self.missing[number] = str(error)
            return None
        if given.why is Why.RIGHTS:
            raise Forbidden
        return given

    async def ask_all(
        self, properties: Mapping[str, object] | None = None, names: list[str] | None = None, *, own: bool = True
    ) -> Answers:
        """Return the answers of all workers at the same time, of the others only without ``own``; Refusal."""
        answers: Answers = {}
        refused: list[Refusal] = []

        async def ask(number: int) -> None:
            try:
                given = await self.ask(number, properties, names)
            except Refusal as refusal:
                refused.append(refusal)
            else:
                if given is not None:
                    answers[number] = given

        async with trio.open_nursery() as nursery:
            for number in self._workers.ids:
                if own or number != self._workers.number:
                    nursery.start_soon(ask, number)
        if refused:
            raise refused[0]
        return dict(sorted(answers.items()))

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
        return without_missing(result, self.missing, self._workers)

    def _requester(self) -> Mapping[str, object]:
        """Return what records say of the requester's connection; nothing where nothing is changed."""
        if self.request.operation not in BY_FIRST:
            return {}
        connection = self._node.control.running.connections().get(self.request.origin)
        return {"conn": self.request.origin} if connection is None else connection.describe_connection()


async def perform_first(node: Node, request: Request, workers: Workers) -> OperationResult:
    """Perform a change in the first worker; the description of the answer names the others that do not follow."""
    result = await perform(node, request)
    kind = kind_named(request)
    lives_at_one = kind is not None and kind.short in AT_ONE
    return result if lives_at_one else without_missing(result, node.control.behind, workers)


def without_missing(result: OperationResult, missing: Mapping[int, str], workers: Workers) -> OperationResult:
    """Return the result, whose description names the workers that are missing."""
    if not missing:
        return result
    why = "; ".join(f"{workers.ids[number]}: {text}" for number, text in sorted(missing.items()))
    log.warning("an answer of management lacks workers: %s", why)
    return replace(result, description=f"incomplete, workers are missing: {why}", missing=why)


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
