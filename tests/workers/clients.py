"""Clients of one worker of a router, and the pages that a router shows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from typing import Final

from tests.routers import DEADLINE_S, RunningRouter
from trouter.client import Connection, connect

#: Connections until one has come to each of two workers, and to spare: a test may have others that come in between.
_TRIES: Final = 8


@asynccontextmanager
async def connected(port: int, container: str) -> AsyncIterator[Connection]:
    """Connect to the router or the worker with this id behind a port; workers get the connections in turn."""
    for _ in range(_TRIES):
        async with connect(f"amqp://127.0.0.1:{port}") as connection:
            if connection.remote.container_id == container:
                yield connection
                return
    raise AssertionError(f"no connection came to {container}")


def page(router: RunningRouter, name: str) -> tuple[int, str]:
    """Return the status and the text of a page of the router's listener for HTTP."""
    port = router.wait_for_line(r"Listening for HTTP on 127\.0\.0\.1:(\d+)")[1]
    connection = HTTPConnection("127.0.0.1", int(port), timeout=DEADLINE_S)
    try:
        connection.request("GET", f"/{name}")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
