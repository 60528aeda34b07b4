"""A router with secureDefaults starts with no file that a stranger can change, and reloads none; its own user may."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.routers import DEADLINE_S, running, stopped_cleanly, watched

pytestmark = pytest.mark.attack

NOBODY = "nobody"
TEXT = """\
router {{
    id: A
    secureDefaults: yes
    usersFile: {0}/users
}}
listener {{
    host: 127.0.0.1
    port: 0
    saslMechanisms: SCRAM-SHA-256
}}
log {{
    module: ROUTER_CORE
    outputFile: {0}/core.log
}}
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that another user may enter, with a file of users."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        (path / "users").write_text("# nobody yet\n")
        (path / "users").chmod(0o600)
        yield path


def test_a_start_with_users_in_an_open_folder_is_refused(folder: Path) -> None:
    path = folder / "trouter.conf"
    path.write_text(TEXT.format(folder))
    folder.chmod(0o777)
    command = [sys.executable, "-m", "trouter", "run", "-c", str(path)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=DEADLINE_S)
    assert ended.returncode == 1
    assert f"all users of this machine can change {folder}; with secureDefaults it is refused" in ended.stderr
    assert f"(chmod o-w {folder}) [writable-by-others]" in ended.stderr
    assert not (folder / "core.log").exists()


def test_a_reload_with_a_file_that_strangers_can_change_is_refused_and_their_log_is_not_written(folder: Path) -> None:
    with running(TEXT.format(folder), folder) as router:
        folder.chmod(0o777)
        log = (folder / "core.log").rename(folder / "core.log.1")
        (folder / "core.log").symlink_to(folder / "target")
        router.process.send_signal(signal.SIGHUP)
        router.wait_for_line("Reload refused, nothing was changed")
        router.wait_for_line(f"all users of this machine can change {folder}")
        router.wait_for_line(
            "it is a symbolic link: name the file that it leads to; the log goes on in the file opened"
        )
        assert not (folder / "target").exists()
        assert log.exists()
        folder.chmod(0o755)
        (folder / "core.log").unlink()
        router.process.send_signal(signal.SIGHUP)
        router.wait_for_line("Reloaded ")
        assert (folder / "core.log").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_user_that_the_router_becomes_may_own_its_files(folder: Path) -> None:
    user = pwd.getpwnam(NOBODY)
    path = folder / "trouter.conf"
    path.write_text(TEXT.format(folder))
    for each in (folder, folder / "users"):
        os.chown(each, user.pw_uid, user.pw_gid)
    command = [sys.executable, "-m", "trouter", "run", "-c", str(path), "--user", NOBODY]
    for _ in range(2):  # the log belongs to that user at the second start
        with watched(command, path) as router:
            router.wait_for_line("Operational")
            with stopped_cleanly(router):
                router.process.send_signal(signal.SIGHUP)
                router.wait_for_line("Reloaded ")
    check = [sys.executable, "-m", "trouter", "check", "--strict", str(path)]
    for more, status in (([], 1), (["--user", NOBODY], 0)):
        ended = subprocess.run([*check, *more], check=False, capture_output=True, text=True, timeout=DEADLINE_S)
        assert ended.returncode == status, ended.stderr
    unknown = subprocess.run(
        [*check, "--user", "no-such"], check=False, capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert unknown.returncode == 2
    assert "there is no user 'no-such'" in unknown.stderr
