"""The `trouter` of a walk is forked, and differs in nothing that a page could show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.routers import PLAIN_LISTENER
from tests.waiting import until
from tests.walks import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "within").mkdir()
    (tmp_path / "within" / "r.conf").write_text(PLAIN_LISTENER)
    return Shell(tmp_path, ["5672"], brings=())


def test_a_command_has_the_folder_the_variables_and_the_streams_of_its_shell(shell: Shell) -> None:
    status, output = shell.type("cd within && trouter check r.conf >said 2>&1 && tail -n 1 said")
    assert (status, output.partition(":")[0]) == (0, "r.conf")
    status, output = shell.type("TROUTER_BUS=127.0.0.1:1 trouter stat -c")
    assert status == 1
    assert "127.0.0.1:1" in output


def test_a_command_has_the_variables_that_python_reads_first(shell: Shell) -> None:
    status, output = shell.type("TROUTER_PURE=1 trouter --version")
    assert status == 0
    assert "(interpreted, " in output


def test_a_router_is_stopped_by_a_signal_and_killed_with_the_process_in_its_place(shell: Shell) -> None:
    for _ in range(2):
        shell.start("trouter run -c within/r.conf")
    stopped, killed = shell.running
    assert stopped.stop() == 0
    pid = killed.wait_for_line(r"process ID (\d+)")[1]
    killed.process.kill()
    until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the router")
    shell.stop()
