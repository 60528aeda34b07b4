"""Clients of one worker of a router, and the pages that a router shows."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.client import HTTPConnection

import trio

from tests.routers import DEADLINE_S, RunningRouter
from trouter.client import Connection, connect


@asynccontextmanager
async def connected(port: int, container: str) -> AsyncIterator[Connection]:
    """Connect to the router or the worker with this id behind a port.

    Workers get the connections in turn, but one that has given no sign of life for a while gets none.
    """
    with trio.fail_after(DEADLINE_S) as scope:
        while True:
            async with connect(f"amqp://127.0.0.1:{port}") as connection:
                if connection.remote.container_id == container:
                    scope.deadline = math.inf
                    yield connection
                    return


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
