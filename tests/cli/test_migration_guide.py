"""The guides for migration from other routers, command by command, as an operator types them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from manual import compatibility
from tests.cli.programs import installed
from tests.routers import ROOT
from tests.walks import Shell, steps_in

PORTS = ("5672", "5673", "55671", "55672")
#: Seconds for a command; more than one router starts on the machine.
DEADLINE_S = 120


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """Yield a shell with the programs of Qpid Dispatch; end the routers that a failed walk leaves."""
    typed = Shell(tmp_path, PORTS, deadline_s=DEADLINE_S)
    for name in ("qdstat", "qdmanage", "qdrouterd"):
        installed(tmp_path / "bin", name)
    for file in tmp_path.rglob("*.json"):
        file.write_text(typed.moved(file.read_text()))
    yield typed
    for file in tmp_path.glob("*.pid"):
        with suppress(OSError, ValueError):
            os.kill(int(file.read_text()), signal.SIGKILL)


@pytest.mark.parametrize(("page", "least"), [("migration-guide.md", 20), ("from-skupper-router.md", 8)])
def test_a_guide_works_as_printed(page: str, least: int, shell: Shell) -> None:
    steps = steps_in((ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert len(steps) >= least
    shell.walk(steps)


def test_the_table_of_compatibility_is_fresh_and_whole() -> None:
    page = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
    assert page == compatibility.page()
    for fact in json.loads((ROOT / "tests" / "config" / "types.json").read_text(encoding="utf-8")):
        assert fact["type"] == "vhostUserGroupSettings" or f"`{fact['type']}`" in page
        missing = [each["name"] for each in fact["attributes"] if f"`{each['name']}`" not in page]
        assert not set(missing) - {"name", "identity", "type"}
        assert not [name for name in fact["operations"] if f"`{name}`" not in page]
