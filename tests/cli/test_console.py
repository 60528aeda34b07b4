"""How `trouter run` points to the web console: the line that it prints, and when it opens a browser."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.routers import DEADLINE_S, ROOT, watched
from trouter.cli import main
from trouter.cli.console import console_url
from trouter.config import DEFAULT_TEXT, load

URLS = {
    "built-in": (DEFAULT_TEXT, "http://127.0.0.1:5680/"),
    "every address": ("listener {\n port: 8080\n http: yes\n}", "http://localhost:8080/"),
    "IPv6": ("listener {\n host: ::1\n port: 8080\n http: yes\n}", "http://[::1]:8080/"),
    "the first that serves it": (
        "listener {\n port: 1\n http: yes\n websockets: no\n}\nlistener {\n host: a.example\n port: 2\n http: yes\n}",
        "http://a.example:2/",
    ),
    "a port that the system chooses": ("listener {\n port: 0\n http: yes\n}", None),
    "files of the operator": (f"listener {{\n port: 1\n httpRootDir: {ROOT}\n}}", None),
    "AMQP alone": ("listener {\n port: 1\n}", None),
}


@pytest.mark.parametrize(("text", "url"), URLS.values(), ids=URLS)
def test_where_the_console_of_a_configuration_is(text: str, url: str | None) -> None:
    assert console_url(load(text=text)) == url


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    """Write the configuration of a router with a console on a free port."""
    port = free_port()
    path = tmp_path / "trouter.conf"
    path.write_text(f"listener {{\n host: 127.0.0.1\n port: {port}\n http: yes\n}}\n")
    return path


def browser(folder: Path) -> tuple[Path, dict[str, str]]:
    """Make a browser that writes the URL to a file; return the file, and the environment that selects the browser."""
    seen = folder / "seen"
    os.mkfifo(seen)
    program = folder / "browser"
    program.write_text(f'#!/bin/sh\necho "$1" >{seen}\n')
    program.chmod(0o755)
    return seen, {**os.environ, "BROWSER": f"{program} %s", "DISPLAY": ":0"}


def test_run_opens_a_browser_on_request(configuration: Path, tmp_path: Path) -> None:
    seen, environment = browser(tmp_path)
    command = [sys.executable, "-m", "trouter", "run", "-c", str(configuration), "--browser"]
    with watched(command, configuration, environment=environment) as router:
        assert seen.read_text() == f"{console_url(load(configuration))}\n"
        assert router.stop() == 0


def test_where_no_console_is_the_wish_for_a_browser_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "trouter.conf"
    path.write_text("listener {\n host: 127.0.0.1\n port: 0\n}\n")
    with watched([sys.executable, "-m", "trouter", "run", "-c", str(path), "--browser"], path) as router:
        router.wait_for_line(r"MAIN \(warning\) no browser is opened: no listener serves the web console")
        assert router.stop() == 0


#: Whether there is a screen, a terminal and a user other than root, and whether this counts as a desktop.
DESKTOPS = {
    "a screen and a terminal": ({"DISPLAY": ":0"}, True, os.geteuid() != 0),
    "Wayland": ({"WAYLAND_DISPLAY": "wayland-0"}, True, os.geteuid() != 0),
    "no screen": ({}, True, False),
    "no terminal": ({"DISPLAY": ":0"}, False, False),
}


@pytest.mark.skipif(sys.platform == "darwin", reason="there is always a screen")
@pytest.mark.parametrize(("screen", "terminal", "desktop"), DESKTOPS.values(), ids=DESKTOPS)
def test_a_server_is_no_desktop(screen: dict[str, str], terminal: bool, desktop: bool) -> None:
    script = "import sys; from trouter.cli.console import at_a_desktop; sys.exit(not at_a_desktop())"
    environment = {name: value for name, value in os.environ.items() if "DISPLAY" not in name}
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={**environment, **screen},
            stdin=theirs,
            stdout=theirs if terminal else subprocess.DEVNULL,
            timeout=DEADLINE_S,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert (done.returncode == 0) is desktop


def test_init_prints_where_the_console_will_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trouter.conf"
    assert main(["init", str(path)]) == 0
    printed = re.search(r"http://\S+/", capsys.readouterr().out)
    assert printed is not None
    assert printed[0] == console_url(load(path))
