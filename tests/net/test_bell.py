"""A bell wakes its task once for all rings before it waits again."""

from __future__ import annotations

import trio
from trio.testing import wait_all_tasks_blocked

from trouter._bell import Bell


async def test_rings_before_and_while_the_task_waits_wake_it_once_each(nursery: trio.Nursery) -> None:
    bell, woken = Bell(), 0

    async def wait() -> None:
        nonlocal woken
        while True:
            await bell.wait()
            woken += 1

    bell.ring()
    bell.ring()
    nursery.start_soon(wait)
    await wait_all_tasks_blocked()
    assert woken == 1
    bell.ring()
    await wait_all_tasks_blocked()
    assert woken == 2
    nursery.cancel_scope.cancel()
