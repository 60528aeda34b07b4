"""The limit on concurrent logins of one place."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trouter.admission.guard import Guard
from trouter.admission.memory import MemoryWatch
from trouter.admission.turns import Turns
from trouter.app import link_findings
from trouter.config import RouterEntity
from trouter.engine.ports import Budget
from trouter.telemetry.recorder import Recorder


class Holder:
    """A task that holds a turn in the background; ``go`` ends it."""

    def __init__(self, turns: Turns, nursery: trio.Nursery) -> None:
        self.turns = turns
        self.nursery = nursery
        self.held: dict[str, list[trio.Event]] = {}

    async def start(self, place: str, most: int = 2) -> int:
        """Request a turn; return how many turns of the place are held then."""
        self.nursery.start_soon(self._hold, place, most)
        await wait_all_tasks_blocked()
        return len(self.held.get(place, []))

    async def go(self, place: str) -> int:
        self.held[place].pop(0).set()
        await wait_all_tasks_blocked()
        return len(self.held[place])

    async def _hold(self, place: str, most: int) -> None:
        async with self.turns.hold_turn(place, most):
            self.held.setdefault(place, []).append(over := trio.Event())
            await over.wait()


async def test_a_place_has_so_many_turns_and_the_next_comes_when_one_is_over() -> None:
    turns = Turns()
    async with trio.open_nursery() as nursery:
        holder = Holder(turns, nursery)
        assert [await holder.start("a") for _ in range(4)] == [1, 2, 2, 2]
        assert await holder.start("b") == 1
        assert turns.waiting == 2
        assert [await holder.go("a") for _ in range(4)] == [2, 2, 1, 0]
        assert len(turns) == 1
        await holder.go("b")
    assert len(turns) == 0


async def test_many_logins_that_wait_are_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_findings, "MANY_LOGINS", 2)
    guard = Guard(MemoryWatch(Budget(0), Recorder()))
    async with trio.open_nursery() as nursery:
        holder = Holder(guard.turns, nursery)
        for _ in range(3):
            await holder.start("a", 1)
        (finding,) = link_findings.waiting_findings(RouterEntity(id="R"), guard)
        assert finding.message == "2 logins wait for their turn, and 0 connections are not open yet"
        nursery.cancel_scope.cancel()
    assert list(link_findings.waiting_findings(RouterEntity(id="R"), guard)) == []


async def test_another_number_holds_at_once() -> None:
    async with trio.open_nursery() as nursery:
        holder = Holder(Turns(), nursery)
        assert [await holder.start("a", 1) for _ in range(2)] == [1, 1]
        assert await holder.start("a", 3) == 3
        nursery.cancel_scope.cancel()


async def test_a_login_that_gives_up_its_turn_leaves_no_entry() -> None:
    turns = Turns()
    async with trio.open_nursery() as nursery:
        holder = Holder(turns, nursery)
        await holder.start("a", 1)
        for place in ("a", "nobody has been here"):
            with trio.move_on_after(0):
                async with turns.hold_turn(place, 1):
                    assert place != "a"
                    await trio.sleep_forever()
        assert len(turns) == 1
        await holder.go("a")
    assert len(turns) == 0
