"""A worker that takes the place of another one, of which the others hear before they see that the old one has ended."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing

from trouter.net.tallies import SharedMemory, Tallies
from trouter.net.workers import CallCode, CallFailed
from trouter.workers.calls import Answer, Channel, Content, Take, pair
from trouter.workers.introductions import MEETS
from trouter.workers.worker import WorkerReach, WorkerTerms

pytestmark = pytest.mark.trio

LIMIT_S = 30.0
NO_NOTES: Mapping[str, Take] = {}


async def adopt(_: object, __: bool) -> str:
    await trio.lowlevel.checkpoint()
    return ""


def answers_of(name: bytes) -> dict[str, Answer]:
    async def say(_: Content) -> Content:
        await trio.lowlevel.checkpoint()
        return Content(body=name)

    async def wait(_: Content) -> Content:
        await trio.sleep_forever()

    return {"name": say, "wait": wait}


class Meeting:
    """The first of two workers, its parent, and the other workers as this test lets it meet them."""

    def __init__(self, reach: WorkerReach, parent: Channel, nursery: trio.Nursery) -> None:
        self.reach = reach
        self._parent = parent
        self._nursery = nursery

    def meet(self, name: bytes, notes: Mapping[str, Take] = NO_NOTES) -> Channel:
        """Let it meet a worker 2 with this name; return that one's end of the channel."""
        other, theirs = pair()
        self._nursery.start_soon(partial(other.run, answers_of(name).get, notes))
        assert self._parent.note(MEETS, Content({"place": 2}, descriptors=(theirs.detach(),)))
        return other


@asynccontextmanager
async def meeting() -> AsyncIterator[Meeting]:
    async def no_others(_: Content) -> Content:
        await trio.lowlevel.checkpoint()
        return Content()

    parent, theirs = pair()
    shared = SharedMemory(2)
    tallies = Tallies(os.dup(shared.descriptor), 1, 2)
    terms = WorkerTerms(place=1, count=2, router_id="A", path=None, workers=None)
    reach = WorkerReach(Channel(theirs), terms, tallies, 1 << 30)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(parent.run, {"meet": no_others}.get, {"alive": lambda _: None}))
        nursery.start_soon(reach.run, lambda _: None, adopt)
        await trio.testing.wait_all_tasks_blocked()
        yield Meeting(reach, parent, nursery)
        nursery.cancel_scope.cancel()
    tallies.close()
    shared.close()


async def test_the_end_of_the_old_worker_takes_nothing_from_the_new_one() -> None:
    async with meeting() as place:
        old = place.meet(b"old")
        await trio.testing.wait_all_tasks_blocked()
        assert await place.reach.ask(2, "name", limit_s=LIMIT_S) == b"old"
        place.meet(b"new")
        old.close()
        await trio.testing.wait_all_tasks_blocked()
        assert await place.reach.ask(2, "name", limit_s=LIMIT_S) == b"new"


async def test_a_call_of_the_old_worker_fails_when_the_new_one_comes() -> None:
    async with meeting() as place:
        place.meet(b"old")
        await trio.testing.wait_all_tasks_blocked()
        failures: list[CallCode] = []

        async def ask() -> None:
            with pytest.raises(CallFailed) as failed:
                await place.reach.ask(2, "wait", limit_s=LIMIT_S)
            failures.append(failed.value.code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            place.meet(b"new")
        assert failures == [CallCode.NOT_SERVING]
        assert await place.reach.ask(2, "name", limit_s=LIMIT_S) == b"new"


async def test_a_worker_that_ends_without_another_one_is_not_asked() -> None:
    async with meeting() as place:
        old = place.meet(b"old")
        await trio.testing.wait_all_tasks_blocked()
        old.close()
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(CallFailed) as failed:
            await place.reach.ask(2, "name", limit_s=LIMIT_S)
        assert failed.value.code is CallCode.NOT_SERVING


def hear(heard: list[object], content: Content) -> None:
    heard.append(content.facts["is"])


async def test_news_reach_the_new_worker_alone() -> None:
    told: dict[str, list[object]] = {"old": [], "new": []}
    async with meeting() as place:
        for name, heard in told.items():
            place.meet(name.encode(), {"news": partial(hear, heard)})
            await trio.testing.wait_all_tasks_blocked()
            place.reach.notify_siblings({"is": name})
            await trio.testing.wait_all_tasks_blocked()
    assert told == {"old": ["old"], "new": ["new"]}
