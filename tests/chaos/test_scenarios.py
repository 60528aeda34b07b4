"""The short form of `make chaos`: the same scenarios with fewer messages, and no failure in any ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.chaos.run import play
from tests.chaos.scenarios import SCENARIOS, Scenario
from tests.chaos.worlds import World, WorldMaker

pytestmark = pytest.mark.slow

COUNT = 1500


@pytest.fixture(scope="module")
def world_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[WorldMaker], World]]:
    """Yield a function that returns a world; it is made on the first call."""
    with ExitStack() as stack:
        made: dict[WorldMaker, World] = {}

        def find(make: WorldMaker) -> World:
            if make not in made:
                folder: Path = tmp_path_factory.mktemp(make.__name__)
                made[make] = stack.enter_context(make(folder))
            return made[make]

        yield find


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if each.short], ids=lambda each: each.happens.__name__)
async def test_a_fault_loses_and_doubles_nothing(scenario: Scenario, world_of: Callable[[WorldMaker], World]) -> None:
    totals = await play(world_of(scenario.world), scenario, COUNT)
    assert totals.failures == []
    assert totals.accepted >= COUNT
    assert totals.recovery
