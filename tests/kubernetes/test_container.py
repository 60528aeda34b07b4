"""A container leaves no process behind, whoever it runs as."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.kubernetes.container import Container, Identity
from tests.kubernetes.waiting import until
from tests.lines import Namespace
from tests.routers import DEADLINE_S


@pytest.fixture
def network() -> Iterator[Namespace]:
    made = Namespace()
    yield made
    made.close()


@pytest.mark.usefixtures("on_a_node")
@pytest.mark.parametrize("user", [0, 10001])
async def test_a_container_that_is_closed_is_gone(user: int, network: Namespace, tmp_path: Path) -> None:
    identity = Identity(user=user, group=user, groups=[user], read_only_root=True, drops_all=user != 0)
    container = Container(network, ["sh", "-c", "echo begun; sleep 600"], {}, [], identity, tmp_path, "pod")
    with trio.fail_after(DEADLINE_S):
        await until(lambda: "begun" in container.text())
        first = container.first_process()
        assert first is not None
        ended = os.pidfd_open(first)
        container.close()
        try:
            await trio.lowlevel.wait_readable(ended)
        finally:
            os.close(ended)
