"""Messages of a router, or of a server that does what a test says, into a spool."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.client.support import Router
from tests.spool.feeds import receiving, settings_for
from tests.spool.support import frames, message
from trouter.client import ACCEPTED, Encoded
from trouter.config import load
from trouter.hooks import Plugins
from trouter.net.router import RouterProcess
from trouter.spool import Spool

OPEN_ROUTER = "router { id: R }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
StartRouter = Callable[..., Any]


@pytest.fixture
async def router(nursery: trio.Nursery) -> AsyncIterator[Router]:
    process = RouterProcess(load(text=OPEN_ROUTER), Plugins.load())
    async with trio.open_nursery() as own:
        await own.start(process.run)
        with trio.fail_after(15):
            yield Router(process)
        own.cancel_scope.cancel()


async def send(router: Router, count: int, first: int = 0, size: int = 100) -> list[int]:
    """Send messages and return those that were accepted."""
    async with router.connect() as connection, connection.open_sender("orders") as sender:
        numbers = range(first, first + count)
        answers = sender.send_all((Encoded(message(number, size)) for number in numbers), in_flight=500)
        outcomes = [outcome async for _, outcome in answers]
    return [number for number, outcome in zip(numbers, outcomes, strict=True) if outcome == ACCEPTED]


def kept(folder: Path) -> list[bytes]:
    return [frame.message for frame in frames(folder)]


async def test_what_a_sender_hears_accepted_lies_in_the_spool(router: Router, spool: Spool, folder: Path) -> None:
    async with receiving(spool, settings_for(router.url)) as progress:
        assert await send(router, 300) == list(range(300))
    assert kept(folder) == [message(number) for number in range(300)]
    assert (progress.accepted, progress.messages, progress.state) == (300, 300, "ended")
