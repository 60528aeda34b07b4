"""Scenarios of the ring: routers, connections and clients that are killed, stopped, replaced or moved."""

from __future__ import annotations

import re

import trio

from .builds import NEWER, newer_build
from .traffic import Traffic, run_blocking
from .worlds import World

#: A stopped process is resumed after this time.
STOPPED_S = 5.0


async def interior_killed(world: World, traffic: Traffic) -> None:
    """The router between senders and receivers is killed and started again."""
    await _kill_and_start(world, traffic, "B")


async def ingress_killed(world: World, traffic: Traffic) -> None:
    """The senders' router is killed and started again."""
    await _kill_and_start(world, traffic, "A")


async def egress_killed(world: World, traffic: Traffic) -> None:
    """The receivers' router is killed and started again."""
    await _kill_and_start(world, traffic, "D")


async def edge_killed(world: World, traffic: Traffic) -> None:
    """The edge router of the senders is killed and started again."""
    await _kill_and_start(world, traffic, "E")


async def _kill_and_start(world: World, traffic: Traffic, name: str) -> None:
    await traffic.until(0.3)
    world.sites[name].kill()
    traffic.fault()
    await run_blocking(world.sites[name].start)
    traffic.back()
    await traffic.until_recovered()


async def interior_stopped(world: World, traffic: Traffic) -> None:
    """The router between is stopped for a while: its connections stay open and carry nothing."""
    await traffic.until(0.3)
    traffic.fault()
    world.sites["B"].pause()
    try:
        await trio.sleep(STOPPED_S)
    finally:
        world.sites["B"].resume()
    await traffic.until_recovered()


async def edge_moves(world: World, traffic: Traffic) -> None:
    """The edge router's interior router is killed: the edge router connects to the other one and returns in the end."""
    await _kill_and_start(world, traffic, "A")


async def connection_reset(world: World, traffic: Traffic) -> None:
    """The connection between two routers is reset, three times."""
    assert world.relay is not None
    for number in (1, 2, 3):
        await traffic.until(number / 4)
        world.relay.reset()
        traffic.fault()
        await traffic.until_recovered()


async def connection_half_open(world: World, traffic: Traffic) -> None:
    """One end of the connection between two routers is gone, and the other end gets no notice."""
    assert world.relay is not None
    await traffic.until(0.3)
    world.relay.leave_half_open()
    traffic.fault()
    await traffic.until_recovered()


async def connection_slow(world: World, traffic: Traffic) -> None:
    """The connection between two routers carries 100 kB a second for some time."""
    assert world.relay is not None
    await traffic.until(0.3)
    world.relay.rate = 100_000
    traffic.fault()
    await traffic.until(0.35)
    world.relay.rate = 0
    await traffic.until_recovered()


async def replaced_in_turn(world: World, traffic: Traffic) -> None:
    """Each router in turn is stopped as an operator stops it, and a newer build is started in its place."""
    build = newer_build(world.folder)
    for number, name in enumerate("BCDAE", 1):
        site = world.sites[name]
        await traffic.until(number / 7)
        await run_blocking(site.stop)
        traffic.fault()
        site.build = build
        await run_blocking(site.start)
        traffic.back()
        site.router.wait_for_line(f"Version: {re.escape(NEWER)}$")
        await traffic.until_recovered()
