"""A router in the test's process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from trouter.app.process import RouterProcess
from trouter.config import load
from trouter.hooks import Plugins
from trouter.wire.performatives import Error


@asynccontextmanager
async def running(configuration: str, nursery: trio.Nursery) -> AsyncIterator[RouterProcess]:
    """Run a router of this configuration in tasks of the nursery, which are cancelled at the end."""
    process = RouterProcess(load(text=configuration), Plugins.load())
    await nursery.start(process.run)
    yield process
    process.in_force.stop(Error("amqp:connection:forced", "the test is over"))
    nursery.cancel_scope.cancel()
