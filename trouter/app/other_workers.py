"""What one of several workers does with the others: it follows their drain, their decisions and the configuration."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from trouter._bugs import BUGS
from trouter.admission.decisions import Decisions
from trouter.admission.lockout import Lockout
from trouter.config import ChangeRefused, Configuration
from trouter.management.agent import Agent
from trouter.management.ports import SERVING, DrainReport
from trouter.net.workers import (
    ANSWERED_WITHIN_S,
    DECISIONS,
    DRAIN,
    MANAGE,
    METRICS,
    READY,
    CallCode,
    CallFailed,
    News,
    Workers,
)

from .control import Control
from .in_force import ConfigurationInForce

if TYPE_CHECKING:
    from .site import RouterSite

#: Seconds for which a worker that starts waits for the state of the drain of the others.
DRAIN_WITHIN_S: Final = 1.0
#: Seconds after which a worker is asked again for its decisions that did not answer.
ASKED_AGAIN_S: Final = 1.0

log = logging.getLogger("trouter.SERVER")


class _Order(NamedTuple):
    """The state of the drain at another worker, and when that was ordered there."""

    report: DrainReport
    ordered_s: float


class OtherWorkers:
    """The other workers of the router, for one of them. What they ask for and what they send is of the same version."""

    def __init__(
        self,
        workers: Workers,
        in_force: ConfigurationInForce,
        control: Control,
        decisions: Decisions,
        lockout: Lockout,
    ) -> None:
        self._workers = workers
        self._in_force = in_force
        self._control = control
        self._decisions = decisions
        self._lockout = lockout

    async def run(self) -> None:
        """Follow the others until cancelled."""
        await self._workers.run(self._receive_news, self._adopt)

    # --- the drain: this worker may take the place of one that ended

    async def start_their_drain(self) -> None:
        """Start to drain if the others do, before this worker opens a listener."""
        order = await self._query_drain()
        if order is not None and order.report.state != SERVING:
            self._in_force.drain.start(_left_s(order.report), 0, order.ordered_s)

    async def follow_drain(self) -> None:
        """Drain if the others do, else do not, once this worker serves.

        It takes calls by now: an order that came meanwhile is later than what another worker has told before.
        """
        order, drain = await self._query_drain(), self._in_force.drain
        if order is None or order.ordered_s <= drain.ordered_s or (order.report.state != SERVING) == drain.active:
            return
        try:
            if drain.active:
                await self._control.cancel_drain()
            else:
                await self._control.start_drain(_left_s(order.report))
        except ChangeRefused as refused:
            log.error("cannot follow the drain of the other workers: %s", refused.description)

    async def _query_drain(self) -> _Order | None:
        """Return the state of the drain at the first other worker that answers; None if none does in time."""
        orders: list[_Order] = []

        async def query(number: int, nursery: trio.Nursery) -> None:
            with suppress(OSError):
                answer = json.loads(await self._workers.ask(number, DRAIN, limit_s=DRAIN_WITHIN_S))
                orders.append(_Order(DrainReport(**answer["report"]), answer["orderedSeconds"]))
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            for number in self._others():
                nursery.start_soon(query, number, nursery)
        return next(iter(orders), None)

    # --- logins and decisions

    def _receive_news(self, news: News) -> None:
        self._lockout.receive_news(news)
        self._decisions.receive_news(news)

    async def follow_decisions(self) -> None:
        """Carry out the decisions in force at each worker whose news this one may have missed, until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                nursery.start_soon(self._carry_out_decisions, await self._workers.next_missed())

    async def _carry_out_decisions(self, number: int) -> None:
        """Carry out the decisions in force at another worker; one that does not serve yet has none."""
        while True:
            try:
                answer = await self._workers.ask(number, DECISIONS, limit_s=ANSWERED_WITHIN_S)
            except CallFailed as failed:
                if failed.code is CallCode.NOT_SERVING:
                    return
                await trio.sleep(ASKED_AGAIN_S)
            else:
                self._decisions.receive_decisions(answer)
                return

    # --- the configuration

    async def _adopt(self, whole: Configuration, reloaded: bool) -> str:
        """Put in force what the first worker has; return why it is not, empty if it is."""
        try:
            await self._control.adopt(whole, reloaded=reloaded)
        except ChangeRefused as refused:
            return refused.description
        except Exception as error:  # noqa: BLE001 - a bug of ours must not end the router
            BUGS.report("internal error, this worker does not have the configuration of the first one", error)
            return "internal error; its log has the details"
        return ""

    # --- answers

    async def answer_calls(self, agent: Agent, site: Callable[[], RouterSite]) -> None:
        """Answer what the others ask until cancelled; ``site`` makes the site, which most workers do not use."""

        async def ready(request: bytes) -> bytes:
            return await site().answer_ready(request)

        async def metrics(request: bytes) -> bytes:
            return await site().answer_metrics(request)

        async def decisions(_: bytes) -> bytes:
            return self._decisions.list_in_force()

        async def drain(_: bytes) -> bytes:
            drain = self._in_force.drain
            return json.dumps({"report": asdict(drain.report()), "orderedSeconds": drain.ordered_s}).encode()

        answers: Mapping[str, Callable[[bytes], Awaitable[bytes]]] = {
            MANAGE: agent.answer_worker,
            READY: ready,
            METRICS: metrics,
            DECISIONS: decisions,
            DRAIN: drain,
        }
        await self._workers.answer_calls(answers)

    def _others(self) -> list[int]:
        """Return the numbers of the others."""
        return [number for number in self._workers.ids if number != self._workers.number]


def _left_s(report: DrainReport) -> float:
    """Return the seconds that a drain has left."""
    return max(report.over_s - report.for_s, 0.0)
