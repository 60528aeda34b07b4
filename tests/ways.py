"""Tests run in the two ways in which a router's sockets are served: below trio, as by its process, and by a task."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any

import pytest
import trio

from trouter.net.host_loop import HostLoop

AsyncTest = Callable[..., Awaitable[None]]


def below_trio(test: AsyncTest) -> Callable[..., None]:
    """Run a test as a router's process runs: trio is the guest of a loop that serves the sockets."""

    @wraps(test)
    def run(**arguments: Any) -> None:
        HostLoop().run(partial(test, **arguments))

    return run


def in_both_ways(test: AsyncTest) -> Callable[..., None]:
    """Run a test twice: as ``below_trio``, and with sockets that a task serves."""

    @wraps(test)
    def run(way: str, **arguments: Any) -> None:
        start = HostLoop().run if way == "below trio" else trio.run
        start(partial(test, **arguments))

    signature = inspect.signature(test)
    way = inspect.Parameter("way", inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), way])  # type: ignore[attr-defined]
    twice: Callable[..., None] = pytest.mark.parametrize("way", ["below trio", "by a task"])(run)
    return twice
