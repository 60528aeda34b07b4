"""The log of a running router: text and JSON side by side, rotated files, changes by a reload."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from proton.utils import BlockingConnection

from tests.routers import RunningRouter, process

CONFIGURATION = """
router {{ id: R }}
listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
log {{ module: ROUTER_CORE, format: json, outputFile: {path}, enable: {enable} }}
"""


def hang_up(router: RunningRouter, times: int) -> None:
    """Send SIGHUP, and wait until the router has reloaded."""
    router.process.send_signal(signal.SIGHUP)
    router.wait_for_line(r"MAIN \(info\) Reloaded ", times)


def connect(router: RunningRouter, number: int) -> None:
    """Connect, attach a link, and wait until both outputs of the log have it."""
    client = BlockingConnection(f"127.0.0.1:{router.port}", timeout=60)
    client.create_receiver("q")
    client.close()
    router.wait_for_line(rf"SERVER \(info\) \[C{number}\] Accepted")


def opened(path: Path) -> list[int]:
    """Return the numbers of the connections in the file."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(line["module"] == "ROUTER_CORE" and line["ts"] for line in lines)
    assert all(line["text"].startswith(f"[C{line['connection']}]") for line in lines)
    return [line["connection"] for line in lines if "Connection Opened" in line["text"]]


def test_one_module_in_json_in_a_file_of_its_own_is_rotated_by_hup(tmp_path: Path) -> None:
    path, moved = tmp_path / "core.log", tmp_path / "core.log.1"
    with process(CONFIGURATION.format(path=path, enable="info+"), tmp_path) as router:
        router.wait_for_line("Operational")
        connect(router, 1)
        path.rename(moved)
        connect(router, 2)
        hang_up(router, 1)
        connect(router, 3)
        assert router.stop() == 0
        assert not router.matching("ROUTER_CORE")
    assert opened(moved) == [1, 2]
    assert opened(path) == [3]


def test_a_reload_changes_levels_and_files_at_once_or_not_at_all(tmp_path: Path) -> None:
    path, other = tmp_path / "core.log", tmp_path / "other.log"
    with process(CONFIGURATION.format(path=path, enable="none"), tmp_path) as router:
        (file,) = tmp_path.glob("*.conf")
        router.wait_for_line("Operational")
        connect(router, 1)
        file.write_text(CONFIGURATION.format(path=tmp_path, enable="info+"))
        router.process.send_signal(signal.SIGHUP)
        router.wait_for_line(rf"Failed to open log file '{tmp_path}': Is a directory")
        connect(router, 2)
        file.write_text(CONFIGURATION.format(path=other, enable="info+"))
        hang_up(router, 1)
        connect(router, 3)
        assert router.stop() == 0
    assert opened(path) == []
    assert opened(other) == [3]
