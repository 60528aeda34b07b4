"""Scenarios with a broker behind the router; the scenario kills the broker and starts it again."""

from __future__ import annotations

from .traffic import Traffic, run_blocking
from .worlds import World


async def broker_behind_auto_links_killed(world: World, traffic: Traffic) -> None:
    """The broker of a waypoint is killed and started again: its queue keeps each accepted message."""
    await _kill_and_start(world, traffic)


async def broker_behind_link_routes_killed(world: World, traffic: Traffic) -> None:
    """The broker to which clients' links are routed is killed and started again: the clients attach again."""
    await _kill_and_start(world, traffic)


async def _kill_and_start(world: World, traffic: Traffic) -> None:
    assert world.broker is not None
    await traffic.until(0.4)
    await run_blocking(world.broker.kill)
    traffic.fault()
    await run_blocking(world.broker.start)
    traffic.back()
    await traffic.until_recovered()
