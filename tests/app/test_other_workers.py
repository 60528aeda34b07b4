"""A worker that starts follows the drain of the others, unless an order has reached it meanwhile."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio

from tests.connections.plays import LISTENER, ROUTER
from trouter.app.other_workers import OtherWorkers
from trouter.management.ports import DRAINED, SERVING, DrainReport
from trouter.testing.player import PlayedRouter, play


async def follow(
    router: PlayedRouter, state: str, ordered_s: float, meanwhile: Callable[[], Awaitable[object]] | None = None
) -> str:
    """Let the router start beside a worker in a state of the drain; return its own.

    ``meanwhile`` is done after the other worker has answered.
    """

    async def ask(*_: Any, **__: Any) -> bytes:
        await trio.lowlevel.checkpoint()
        if meanwhile is not None:
            await meanwhile()
        return json.dumps({"report": asdict(DrainReport(state, over_s=60.0)), "orderedSeconds": ordered_s}).encode()

    process = router.process
    others = cast("Any", SimpleNamespace(ids={1: "A", 2: "A.2"}, number=1, ask=ask))
    await OtherWorkers(others, process.in_force, process.control, cast("Any", None), cast("Any", None)).follow_drain()
    return process.in_force.drain.report().state


async def test_a_drain_that_began_or_ended_while_the_worker_started_is_followed() -> None:
    async with play(ROUTER + LISTENER) as router:
        assert await follow(router, DRAINED, time.monotonic()) != SERVING
        assert await follow(router, SERVING, time.monotonic()) == SERVING


async def test_an_order_that_came_meanwhile_is_later_than_what_another_worker_told() -> None:
    async with play(ROUTER + LISTENER) as router:
        control, before_s = router.process.control, time.monotonic()
        router.process.in_force.drain.start(60.0, 0, before_s)  # as before it opened a listener
        assert await follow(router, DRAINED, before_s, control.cancel_drain) == SERVING
        assert await follow(router, SERVING, before_s, lambda: control.start_drain(60.0)) != SERVING


@pytest.mark.parametrize("state", [DRAINED, SERVING])
async def test_what_is_known_is_not_done_again(state: str, caplog: pytest.LogCaptureFixture) -> None:
    async with play(ROUTER + LISTENER) as router:
        assert await follow(router, state, 0.0) == SERVING
    assert "Draining" not in caplog.text
