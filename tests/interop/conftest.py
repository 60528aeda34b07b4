"""One router for all tests of a file; each test has addresses of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.routers import PLAIN_LISTENER, RunningRouter, running

NUMBERS = count()


@pytest.fixture(scope="session")
def shared_router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    folder: Path = tmp_path_factory.mktemp("router")
    with running(PLAIN_LISTENER + "address { prefix: multicast, distribution: multicast }\n", folder) as router:
        yield router


@pytest.fixture
def router(shared_router: RunningRouter) -> Iterator[RunningRouter]:
    line = len(shared_router.lines)
    yield shared_router
    shared_router.assert_no_fault_of_ours(since=line)


@pytest.fixture
def address(request: pytest.FixtureRequest) -> str:
    return f"{request.function.__name__}.{next(NUMBERS)}"


@pytest.fixture
def multicast_address(address: str) -> str:
    return f"multicast.{address}"
