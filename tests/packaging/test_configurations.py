"""The default configurations of the Debian package and the image: local clients see the router, and change nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.routers import ROOT, running

PACKAGED = [ROOT / "packaging" / "deb" / "debian" / "trouter.conf", ROOT / "packaging" / "container" / "trouter.conf"]


def trouter(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trouter", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("path", PACKAGED, ids=lambda path: path.parts[-2])
def test_a_client_of_the_machine_may_look_and_nothing_else(path: Path, tmp_path: Path) -> None:
    text = re.sub(r"port: .*", "port: 0", path.read_text(encoding="utf-8"))
    with running(text, tmp_path) as router:
        bus = f"127.0.0.1:{router.port}"
        looked = trouter("stat", "-b", bus, "--connections")
        assert (looked.returncode, looked.stderr) == (0, "")
        for change in ("update log/DEFAULT enable=debug+", "create --type address name=a prefix=a", "reload"):
            refused = trouter("manage", *change.split(), "-b", bus)
            assert (refused.returncode, refused.stdout) == (1, "")
            assert "ForbiddenStatus" in refused.stderr, change


@pytest.mark.parametrize("path", PACKAGED, ids=lambda path: path.parts[-2])
def test_others_are_refused(path: Path) -> None:
    unsafe = [line for line in trouter("check", path).stderr.splitlines() if line.startswith("unsafe")]
    assert ["every client from this machine" in line for line in unsafe] == [True, True]
    for host, status in (("127.0.0.1", 0), ("192.0.2.7", 1), ("2001:db8::7", 1)):
        asked = ("--user", "anonymous", "--host", host, "--target", "$management")
        assert trouter("policy", "explain", "-c", path, *asked).returncode == status, host
