"""The example of the plugin authors' guide: built, installed, listed, run by a router, and tested by its tests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proton import ConnectionException
from proton.utils import BlockingConnection

from tests.routers import DEADLINE_S, ROOT, RunningRouter, running
from tests.walks import Shell

pytestmark = pytest.mark.slow

TEMPLATE = ROOT / "examples" / "plugin-template"
GUIDE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
KEY = "0123456789abcdef0123456789abcdef"


def run(*arguments: str | Path, site: Path | None = None, cwd: Path = ROOT) -> str:
    """Return the output of a Python command, with the packages installed in ``site``."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **with_site(site)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def with_site(site: Path | None) -> dict[str, str]:
    return {} if site is None else {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT), str(ROOT / "plugins")])}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the template into a folder, from a wheel that was built without a network."""
    folder = tmp_path_factory.mktemp("template")
    source = folder / "source"
    for path in TEMPLATE.rglob("*"):
        if path.is_file() and path.suffix in {".py", ".toml"}:
            copy = source / path.relative_to(TEMPLATE)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    offline = ("--no-deps", "--no-index", "--quiet", "--disable-pip-version-check")
    run("-m", "pip", "wheel", "--no-build-isolation", *offline, "-w", folder, source)
    (wheel,) = folder.glob("trouter_tickets-1.0.0-*.whl")
    run("-m", "pip", "install", *offline, "--target", folder / "site", wheel)
    return folder / "site"


def listed_row(site: Path, *arguments: str | Path) -> dict[str, Any]:
    """Return the row of the template in `trouter plugins`."""
    rows: list[dict[str, Any]] = json.loads(run("-m", "trouter", "plugins", "--json", *arguments, site=site))
    (row,) = [row for row in rows if row["name"] == "tickets"]
    return row


@pytest.fixture(scope="module")
def router(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    folder = tmp_path_factory.mktemp("router")
    (folder / "key").write_text(KEY)
    row = listed_row(site)
    assert (row["loaded"], row["distribution"], row["version"]) == (False, "trouter-tickets", "1.0.0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", with_site(site)["PYTHONPATH"])
        text = f"""
router {{
    id: R
    plugins: tickets@sha256:{row["sha256"]}
    pluginSettings: {{ tickets: {{ keyFile: {folder / "key"} }} }}
}}
listener {{
    host: 127.0.0.1
    port: 0
    saslMechanisms: PLAIN
    authenticatePeer: yes
    allowInsecurePlain: loopback
}}
"""
        with running(text, folder) as started:
            row = listed_row(site, "-c", started.configuration)
            assert row["loaded"]
            assert row["hooks"] == ["configure", "open_sasl", "sasl_mechanisms"]
            assert row["file"] == str(site / "trouter_tickets.py")
            yield started


def ticket(site: Path, user: str, lifetime_s: int, key: str = KEY) -> str:
    code = f"import trouter_tickets; print(trouter_tickets.ticket({key.encode()!r}, {user!r}, {lifetime_s}))"
    return run("-c", code, site=site).strip()


def enter(router: RunningRouter, user: str, password: str) -> BlockingConnection:
    return BlockingConnection(
        f"amqp://127.0.0.1:{router.port}",
        timeout=DEADLINE_S,
        user=user,
        password=password,
        allowed_mechs="PLAIN",
        allow_insecure_mechs=True,
    )


class Plugins(Shell):
    """A shell in the folder of the plugin; `pip` installs into a folder of the test, and asks no index."""

    def __init__(self, folder: Path) -> None:
        for path in ("pyproject.toml", "src/trouter_tickets.py"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes((TEMPLATE / path).read_bytes())
        super().__init__(folder, ports=("9",), brings=())
        pip = folder / "bin" / "pip"
        pip.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pip "$@"\n')
        pip.chmod(0o755)
        settings = ("NO_INDEX", "NO_DEPS", "DISABLE_PIP_VERSION_CHECK")
        self._environment |= {f"PIP_{name}": "1" for name in settings} | {
            "PIP_NO_BUILD_ISOLATION": "0",  # as the option: pip reads the setting the other way round
            "PIP_TARGET": str(folder / "site"),
            "PYTHONPATH": with_site(folder / "site")["PYTHONPATH"],
        }


def test_the_commands_of_the_guide_work_as_printed(tmp_path: Path) -> None:
    """It is built, installed and listed, and the command for the hash prints the listed one."""
    installing, hashing = re.findall(r"^```\n((?:pip wheel|find) .*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    shell = Plugins(tmp_path)
    listed = [shell.type(line) for line in installing.splitlines()]
    assert [status for status, _ in listed] == [0, 0, 0], listed
    assert re.search(r"^tickets\b.*not listed", listed[-1][1], re.MULTILINE), listed
    status, output = shell.type(f"cd site && {hashing}")
    assert status == 0
    assert listed_row(tmp_path / "site")["sha256"] == output.split()[0]


def test_its_own_tests_pass(site: Path) -> None:
    output = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, TEMPLATE / "tests", site=site)
    assert re.search(r"\d\d passed", output)


def test_a_ticket_lets_in_a_client_of_another_library(site: Path, router: RunningRouter) -> None:
    connection = enter(router, "alice", ticket(site, "alice", 3600))
    receiver = connection.create_receiver("tickets.test", credit=1)
    connection.create_sender("tickets.test")
    receiver.close()
    connection.close()


def test_a_forged_ticket_does_not(site: Path, router: RunningRouter) -> None:
    with pytest.raises(ConnectionException, match="Authentication failed"):
        enter(router, "alice", ticket(site, "alice", 3600, key="some other key"))


def test_the_router_ends_the_connection_when_the_ticket_ends(site: Path, router: RunningRouter) -> None:
    issued = ticket(site, "alice", 2)
    connection = enter(router, "alice", issued)
    with pytest.raises(ConnectionException):
        connection.wait(lambda: False, timeout=DEADLINE_S)
    assert time.time() >= int(issued.partition(".")[0])


@pytest.mark.parametrize("name", ["pyproject.toml", "src/trouter_tickets.py", "tests/test_tickets.py"])
def test_the_guide_shows_the_tested_files(name: str) -> None:
    shown = GUIDE.partition(f"`{name}`")[2].partition("\n```")[2].partition("\n")[2].partition("\n```")[0]
    assert shown, f"the guide does not show {name}"
    source = (TEMPLATE / name).read_text(encoding="utf-8")
    if name.startswith("tests"):
        assert all(piece in source for piece in shown.split("\n\n\n"))
    else:
        assert f"{shown}\n" == source
