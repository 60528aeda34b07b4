"""Fixtures of the tests of the client: a router, a connection to it, and a limit for hangs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import trio

from tests.client.support import Router
from trouter.app.process import RouterProcess
from trouter.client import Connection
from trouter.config import load
from trouter.hooks import Plugins

#: Seconds that only a hang takes; no test waits for them to pass.
TOO_LONG_S = 60.0
OPEN_ROUTER = "router { id: R }\nlistener { host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"

StartRouter = Callable[..., Awaitable[Router]]


async def _end_a_hang() -> None:
    await trio.sleep(TOO_LONG_S)
    raise AssertionError("the test hangs")


@pytest.fixture
async def guard(nursery: trio.Nursery) -> trio.Nursery:
    """Return a nursery that fails the test when it hangs."""
    nursery.start_soon(_end_a_hang)
    return nursery


@pytest.fixture
async def start_router(guard: trio.Nursery) -> AsyncIterator[StartRouter]:
    started: list[RouterProcess] = []
    async with trio.open_nursery() as nursery:

        async def start(configuration: str = OPEN_ROUTER, plugins: Plugins | None = None) -> Router:
            process = RouterProcess(load(text=configuration), plugins or Plugins.load())
            await nursery.start(process.run)
            started.append(process)
            return Router(process)

        yield start
        nursery.cancel_scope.cancel()
    for process in started:
        for listener in process.listeners:
            for sock in listener.sockets:
                sock.close()


@pytest.fixture
async def router(start_router: StartRouter) -> Router:
    return await start_router()


@pytest.fixture
async def connection(router: Router) -> AsyncIterator[Connection]:
    async with router.connect() as connected:
        yield connected
