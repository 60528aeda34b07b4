"""The default configurations of the Debian package and the image: local clients see the router, and change nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.routers import ROOT, running
from tests.tools.live import run

PACKAGED = [ROOT / "packaging" / "deb" / "debian" / "trouter.conf", ROOT / "packaging" / "container" / "trouter.conf"]


def trouter(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trouter", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


def moved(path: Path) -> str:
    """Return the text of a file, with free ports."""
    return re.sub(r"port: .*", "port: 0", path.read_text(encoding="utf-8"))


#: The views of Qpid Dispatch's tool; --log is for those who may operate the router.
VIEWS = (
    "-g", "-c", "-l", "-n", "-e", "-a", "-m", "--autolinks", "--linkroutes", "--vhosts", "--vhostgroups",
    "--vhoststats", "--policy",
)  # fmt: skip


@pytest.mark.parametrize("path", PACKAGED, ids=lambda path: path.parts[-2])
async def test_a_client_of_the_machine_may_look_and_nothing_else(path: Path, tmp_path: Path) -> None:
    with running(moved(path), tmp_path) as router:
        bus = f"127.0.0.1:{router.port}"
        for view in VIEWS:
            looked = await run("stat", "-b", bus, view)
            assert (looked.status, looked.err) == (0, ""), view
            assert looked.out
        shown = await trio.run_process([Path(sys.executable).with_name("qdstat"), "-b", bus, "-g"], capture_stdout=True)
        assert b"Router Statistics" in shown.stdout
        for change in ("update log/DEFAULT enable=debug+", "create --type address name=a prefix=a", "reload"):
            refused = await run("manage", *change.split(), "-b", bus)
            assert (refused.status, refused.out) == (1, "")
            assert "forbidden: " in refused.err, change


@pytest.mark.parametrize("path", PACKAGED, ids=lambda path: path.parts[-2])
def test_the_file_passes_the_strict_check(path: Path) -> None:
    checked = trouter("check", "--strict", path)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("path", PACKAGED, ids=lambda path: path.parts[-2])
def test_others_are_refused(path: Path) -> None:
    for host, status in (("127.0.0.1", 0), ("192.0.2.7", 1), ("2001:db8::7", 1)):
        asked = ("--user", "anonymous", "--host", host, "--target", "$management")
        assert trouter("policy", "explain", "-c", path, *asked).returncode == status, host
