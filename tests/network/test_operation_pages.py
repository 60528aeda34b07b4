"""Pages that lead an operator through a task with several routers, command by command."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.routers import ROOT
from tests.terminal import Terminal
from tests.walks import steps_in

#: By page: its ports, that of commands without `-b` first, and how many commands it has at least.
PAGES = {
    "secured-edge.md": (("5672", "5671", "45672"), 16),
    "upgrading.md": (("5672", "5673", "55672"), 10),
    "capacity.md": (("5672", "5673", "55672"), 7),
}


def text_of(page: str) -> str:
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [*PAGES])
def test_a_page_works_as_printed(page: str, tmp_path: Path) -> None:
    ports, least = PAGES[page]
    steps = steps_in(text_of(page))
    assert len(steps) >= least
    Terminal(tmp_path, ports, text_of(page)).walk(steps)


@pytest.fixture
def balanced(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder, and end the load balancer that a failed walk leaves there."""
    yield tmp_path
    with suppress(OSError, ValueError):
        os.kill(int((tmp_path / "haproxy.pid").read_text()), signal.SIGKILL)


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="HAProxy is not installed")
def test_the_load_balancer_works_as_printed(balanced: Path) -> None:
    page = text_of("load-balancer.md")
    steps = steps_in(page)
    assert len(steps) >= 18
    Terminal(balanced, ("5672", "5673", "5670", "5680", "8081", "8082", "55672"), page).walk(steps)
