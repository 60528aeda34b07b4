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
    "workers.md": (("5672",), 7),
}


#: The ports of the page on load balancers, that of commands without `-b` first.
PORTS = ("5672", "5673", "5670", "5671", "5674", "5675", "5680", "8081", "8082", "8083", "55672")
#: Debian has it in the package libnginx-mod-stream.
STREAM = Path("/usr/lib/nginx/modules/ngx_stream_module.so")


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
    """Yield a folder, and end the load balancers that a failed walk leaves there."""
    yield tmp_path
    for name in ("haproxy.pid", "nginx.pid"):
        with suppress(OSError, ValueError):
            os.kill(int((tmp_path / name).read_text()), signal.SIGKILL)


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="HAProxy is not installed")
@pytest.mark.skipif(shutil.which("nginx") is None or not STREAM.exists(), reason="nginx with its stream module is not")
def test_the_load_balancer_works_as_printed(balanced: Path) -> None:
    page = text_of("load-balancer.md")
    steps = steps_in(page)
    assert len(steps) >= 28
    Terminal(balanced, PORTS, page).walk(steps)
