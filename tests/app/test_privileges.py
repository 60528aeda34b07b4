"""A router that is started as root drops to another user once its sockets are bound."""

from __future__ import annotations

import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.peer import Peer
from tests.routers import DEADLINE_S, ROOT, RunningRouter, stopped_cleanly, watched

NOBODY = "nobody"


pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Make a folder with a subfolder that no user may enter."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


def privileged_port() -> int:
    for port in range(1023, 512, -1):
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    pytest.skip("no port below 1024 is free")


@pytest.fixture(scope="module")
def router(folder: Path) -> Iterator[RunningRouter]:
    """Run a router that drops to `nobody`, on a port of root's, with a log file in a folder of `nobody`."""
    nobody = pwd.getpwnam(NOBODY)
    logs = folder / "logs"
    logs.mkdir()
    os.chown(logs, nobody.pw_uid, nobody.pw_gid)
    path = folder / "trouter.conf"
    path.write_text(
        f"listener {{ host: 127.0.0.1, port: {privileged_port()}, saslMechanisms: ANONYMOUS }}\n"
        f"log {{ module: ROUTER_CORE, outputFile: {logs / 'core.log'}, enable: trace+ }}\n"
    )
    command = [sys.executable, "-m", "trouter", "run", "-c", str(path), "--user", NOBODY]
    with watched(command, path) as started:
        started.wait_for_line("Operational")
        with stopped_cleanly(started):
            yield started


def status_of(router: RunningRouter) -> dict[str, str]:
    lines = Path(f"/proc/{router.process.pid}/status").read_text(encoding="ascii").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_every_thread_is_an_ordinary_user_with_no_group_and_no_right_of_roots(router: RunningRouter) -> None:
    nobody = pwd.getpwnam(NOBODY)
    for thread in Path(f"/proc/{router.process.pid}/task").iterdir():
        text = (thread / "status").read_text(encoding="ascii")
        assert re.search(rf"^Uid:(\s+{nobody.pw_uid}){{4}}$", text, re.MULTILINE)
        assert re.search(rf"^Gid:(\s+{nobody.pw_gid}){{4}}$", text, re.MULTILINE)
    status = status_of(router)
    assert set(status["Groups"].split()) <= {str(nobody.pw_gid)}
    assert {int(status[name], 16) for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")} == {0}
    assert status["NoNewPrivs"] == "1"


def test_the_router_serves_a_port_that_its_user_could_not_bind(router: RunningRouter) -> None:
    with Peer(router.port):
        pass


def test_no_process_may_inspect_the_router_and_no_core_is_written(router: RunningRouter) -> None:
    process = Path(f"/proc/{router.process.pid}")
    assert (process / "environ").stat().st_uid == 0  # root owns it: even processes of that user may not read it
    limits = (process / "limits").read_text(encoding="ascii")
    assert re.search(r"^Max core file size\s+0\s+0\s", limits, re.MULTILINE)


def test_a_reload_reads_the_configuration_and_creates_the_log_file_again(router: RunningRouter) -> None:
    log = router.configuration.parent / "logs" / "core.log"
    moved = log.rename(log.with_suffix(".1"))
    router.process.send_signal(signal.SIGHUP)
    router.wait_for_line("Reloaded ")
    assert log.stat().st_uid == moved.stat().st_uid == pwd.getpwnam(NOBODY).pw_uid


def test_files_unreadable_for_the_new_user_are_reported_and_a_reload_is_refused(folder: Path) -> None:
    path = folder / "private.conf"
    (folder / "users").write_text("# nobody yet\n")
    (folder / "users").chmod(0o600)
    path.write_text(
        f"router {{ usersFile: {folder / 'users'} }}\nlistener {{ host: 127.0.0.1, port: 0 }}\n"
        f"log {{ module: ROUTER_CORE, outputFile: {folder / 'core.log'} }}\n"
    )
    path.chmod(0o600)
    command = [sys.executable, "-m", "trouter", "run", "-c", str(path), "--user", NOBODY]
    with watched(command, path) as router:
        router.wait_for_line(f"user nobody cannot read {path}: a reload will be refused")
        router.wait_for_line(f"user nobody cannot read {folder / 'users'}: a reload")
        router.wait_for_line(f"user nobody cannot make files in {folder}: after a rotation")
        router.wait_for_line("Operational")
        router.process.send_signal(signal.SIGHUP)
        router.wait_for_line("Reload refused, nothing was changed")
        router.wait_for_line("cannot be read: Permission denied")
        with Peer(router.port):
            pass
        assert router.stop() == 0


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--user", "no-such-user"], 1, "there is no user 'no-such-user'"),
        (["--user", NOBODY, "--group", "no-such-group"], 1, "there is no group 'no-such-group'"),
        (["--group", "root"], 2, "--group needs --user"),
    ],
)
def test_a_user_or_group_that_is_not_there_stops_the_start(arguments: list[str], status: int, message: str) -> None:
    command = [sys.executable, "-m", "trouter", "run", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == status
    assert message in done.stderr


def test_a_process_without_the_right_serves_no_client() -> None:
    code = """
from trouter import logs
from trouter.config import load
from trouter.hooks import Plugins
from trouter.app.privileges import PrivilegeError
from trouter.app.process import run

def bound():
    raise PrivilegeError("not that one")

configuration = load(text="listener { host: 127.0.0.1, port: 0 }")
logs.configure(configuration)
print(run(configuration, Plugins(), bound=bound))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "Router start-up failed: not that one" in done.stderr
    assert "Listening" not in done.stderr
    assert "ResourceWarning" not in done.stderr
