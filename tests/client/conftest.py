"""A router in the test's own loop, on a real socket, and what tests of the client say again and again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio

from trouter.client import Connection, connect
from trouter.config import load
from trouter.engine.limits import EngineLimits
from trouter.hooks import Plugins
from trouter.net.router import RouterProcess

#: Our ids begin three before the 32-bit wrap, so every test crosses it.
NEAR_THE_WRAP = EngineLimits(first_outgoing_id=0xFFFFFFFD)

#: Only a hang takes this long; no test waits for it.
TOO_LONG_S = 60.0

OPEN_ROUTER = "router { id: R }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"


class Router:
    """A running router and how to reach it."""

    def __init__(self, process: RouterProcess) -> None:
        self.process = process

    @property
    def url(self) -> str:
        return f"amqp://127.0.0.1:{self.process.listeners[0].sockets[0].getsockname()[1]}"

    def connect(self, **options: Any) -> AbstractAsyncContextManager[Connection]:
        return connect(self.url, **{"limits": NEAR_THE_WRAP, **options})

    def cut(self) -> None:
        """Every connection is gone, without a word."""
        for peer in list(self.process.listeners[0].peers):
            peer._broken("cut by the test")


@pytest.fixture
async def start_router(nursery: trio.Nursery) -> Callable[..., Any]:
    async def start(configuration: str = OPEN_ROUTER, plugins: Plugins | None = None) -> Router:
        process = RouterProcess(load(text=configuration), plugins or Plugins.load())
        await nursery.start(process.run)
        return Router(process)

    return start


@pytest.fixture
async def router(start_router: Callable[..., Any]) -> Router:
    started: Router = await start_router()
    return started


@pytest.fixture
async def connection(router: Router) -> AsyncIterator[Connection]:
    async with router.connect() as connected:
        yield connected


@pytest.fixture(autouse=True)
async def no_hang() -> AsyncIterator[None]:
    with trio.fail_after(TOO_LONG_S):
        yield
