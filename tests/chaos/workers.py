"""The scenario of a router with several workers."""

from __future__ import annotations

import os
import signal

from .traffic import Traffic, run_blocking
from .worlds import World


async def worker_killed(world: World, traffic: Traffic) -> None:
    """The two workers of a router are killed in turn, each twice, and replaced: the other one serves meanwhile."""
    router = world.sites["R"].router
    for number, place in enumerate((1, 2, 1, 2), 1):
        await traffic.until(number / 6)
        serves = rf"\[W{place}\] Operational, 1 Threads Running \(process ID \d+\)"
        lines = router.matching(serves)
        os.kill(int(lines[-1].rpartition("process ID ")[2].rstrip(")")), signal.SIGKILL)
        traffic.fault()
        await run_blocking(router.wait_for_line, serves, len(lines) + 1)
        await traffic.until_recovered()
