"""The notifications of a router to its service manager, and the systemd unit for them."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from tests.routers import DEADLINE_S, PLAIN_LISTENER, ROOT, running
from trouter.app.supervision import Supervisor

UNIT = ROOT / "packaging" / "trouter.service"
#: That of one of several routers on a machine.
INSTANCES = UNIT.with_name("trouter@.service")


def test_the_service_manager_is_notified_of_ready_watchdog_and_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(DEADLINE_S)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "60000")
        with running(PLAIN_LISTENER, tmp_path) as router:
            # A sign of life may be due before the listeners are open.
            while (first := manager.recv(100)) == b"WATCHDOG=1":
                pass
            heard = [manager.recv(100) for _ in range(3)]
            assert (first, heard) == (b"READY=1", [b"WATCHDOG=1"] * 3)
            assert router.stop() == 0
        while (last := manager.recv(100)) == b"WATCHDOG=1":
            pass
        assert last == b"STOPPING=1"


def test_without_a_service_manager_no_notification_is_sent() -> None:
    supervisor = Supervisor({})
    supervisor.ready()
    assert supervisor.pause_s is None
    supervisor.send_sign_of_life()  # with no manager


def test_a_watchdog_for_another_process_is_ignored() -> None:
    environment = {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}
    assert Supervisor(environment).pause_s is None
    assert environment == {}
    environment = {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}
    supervisor = Supervisor(environment)
    assert supervisor.pause_s == 1.0
    supervisor.stopping()  # with no manager


@pytest.mark.parametrize("unit", [UNIT, INSTANCES], ids=lambda unit: unit.name)
def test_systemd_verifies_the_unit(unit: Path) -> None:
    analyse = shutil.which("systemd-analyze")
    if analyse is None:
        pytest.skip("systemd is not here to read it")
    done = subprocess.run(
        [analyse, "--man=no", "verify", unit], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_starts_an_existing_command_as_an_existing_user() -> None:
    unit = ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(UNIT)
    assert unit["Service"]["Type"] == "notify"
    for name in ("ProtectSystem", "NoNewPrivileges", "MemoryDenyWriteExecute", "SystemCallFilter"):
        assert name in unit["Service"]
    users = UNIT.with_suffix(".sysusers").read_text(encoding="utf-8").splitlines()
    assert [line.split()[1] for line in users if line.startswith("u ")] == [unit["Service"]["User"]]
    program, *arguments = unit["Service"]["ExecStart"].removeprefix("/usr/bin/env ").split()
    assert program == "trouter"
    done = subprocess.run(
        [sys.executable, "-m", "trouter", arguments[0], "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert all(option in done.stdout for option in arguments if option.startswith("-"))


def test_the_unit_finds_the_command_where_the_manual_installs_it(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    (home,) = re.findall(r"^python3 -m venv (\S+)$", page, re.MULTILINE)
    unit = ConfigParser(strict=False, interpolation=None)
    unit.read(UNIT)
    path = unit["Service"].get("Environment", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "trouter").symlink_to(Path(sys.executable).with_name("trouter"))
    words = [*unit["Service"]["ExecStart"].split()[:2], "--version"]
    here = {"PATH": path.removeprefix("PATH=").replace(home, str(tmp_path)), "TROUTER_PURE": "1"}
    done = subprocess.run(words, env=here, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("trouter ")


def test_the_unit_of_several_routers_differs_only_in_their_files() -> None:
    one, several = (path.read_text(encoding="utf-8").splitlines() for path in (UNIT, INSTANCES))
    changed = [line for line in several if line not in one and not line.startswith("#")]
    assert changed == [
        "Description=trouter %i, an AMQP 1.0 message router",
        "ExecStart=/usr/bin/env trouter run -c /etc/trouter/%i.conf",
        "StateDirectory=trouter/%i",
        "LogsDirectory=trouter/%i",
    ]
    assert len([line for line in one if line not in several and not line.startswith("#")]) == len(changed)


def test_the_unit_names_the_manual_of_the_router() -> None:
    assert "\nDocumentation=man:trouter(1)\n" in UNIT.read_text(encoding="utf-8")


def test_the_drop_in_of_the_manual_moves_the_configuration_below_what_the_router_may_write_to(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    drop_in = page.partition("```ini\n")[2].partition("```")[0]
    told = dict(line.split("=", 1) for line in drop_in.splitlines() if "=" in line)
    _, _, path = told["ExecStart"].partition(" -c ")
    assert str(Path(path).parent) == f"/var/lib/{told['StateDirectory']}"
    assert told["ExecStart"].removesuffix(path) in UNIT.read_text(encoding="utf-8")
    assert "/var/lib/trouter/configuration/\n" in page
    if (systemd := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd-analyze is not here")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / f"{UNIT.name}.d").mkdir()
    (tmp_path / f"{UNIT.name}.d" / "network.conf").write_text(drop_in, encoding="utf-8")
    done = subprocess.run([systemd, "--man=no", "verify", unit], capture_output=True, text=True, check=False)
    assert UNIT.name not in done.stderr, done.stderr
