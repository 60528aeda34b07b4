"""Scenarios of the triangle: lines that are slow, lose or reorder packets, or are dead in one direction or both."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .traffic import Traffic, run_blocking
from .worlds import World

#: A line is bad from the first to the second share of ``count``.
_BAD_FROM, _BAD_TO = 0.3, 0.5


async def line_delays(world: World, traffic: Traffic) -> None:
    """A packet takes a quarter of a second each way."""
    await _bad_for_a_while(world, traffic, delay_s=0.25)


async def line_loses(world: World, traffic: Traffic) -> None:
    """One packet of fifty is lost."""
    await _bad_for_a_while(world, traffic, loss=0.02)


async def line_reorders(world: World, traffic: Traffic) -> None:
    """One packet of five is overtaken by those behind it."""
    await _bad_for_a_while(world, traffic, reorder=0.2)


async def line_narrow(world: World, traffic: Traffic) -> None:
    """The line carries 500 kB a second."""
    await _bad_for_a_while(world, traffic, rate=500_000)


async def _bad_for_a_while(world: World, traffic: Traffic, **properties: float) -> None:
    await traffic.until(_BAD_FROM)
    for name, value in properties.items():
        setattr(world.lines["AB"], name, value)
    traffic.fault()
    await traffic.until_recovered()
    await traffic.until(_BAD_TO)
    world.lines["AB"].mend()


async def partition(world: World, traffic: Traffic) -> None:
    """A is cut off from both others until they count it as lost; then the lines are repaired."""
    await traffic.until(_BAD_FROM)
    lost = [_loss_of(world, *pair) for pair in ("AB", "BA")]
    for name in ("AB", "AC"):
        world.lines[name].cut()
    for wait in lost:
        await run_blocking(wait)
    for name in ("AB", "AC"):
        world.lines[name].mend()
    traffic.fault()
    await traffic.until_recovered()


async def one_way_partition(world: World, traffic: Traffic) -> None:
    """Packets from A to B are lost, packets from B to A arrive: the messages go over C."""
    await traffic.until(_BAD_FROM)
    lost = _loss_of(world, "A", "B")
    world.lines["AB"].dead = [True, False]
    traffic.fault()
    await traffic.until_recovered()
    await run_blocking(lost)
    world.lines["AB"].mend()
    await traffic.until(0.8)


async def half_open(world: World, traffic: Traffic) -> None:
    """B is killed and started again while no packet passes: its neighbours keep connections that B has lost."""
    await traffic.until(_BAD_FROM)
    for name in ("AB", "BC"):
        world.lines[name].cut()
    await run_blocking(world.sites["B"].restart)
    for name in ("AB", "BC"):
        world.lines[name].mend()
    traffic.fault()
    await traffic.until_recovered()


def _loss_of(world: World, name: str, neighbour: str) -> Callable[[], object]:
    """Return a function that waits until the router drops a neighbour that it has now."""
    router = world.sites[name].router
    line = f"router {neighbour} is no longer a neighbour"
    return partial(router.wait_for_line, line, len(router.matching(line)) + 1)
