"""The folder of Qpid Dispatch's console in `httpRootDir`, when it does not exist on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from trouter.config import ConfigurationError, load
from trouter.config.findings import evaluate
from trouter.config.problems import Severity
from trouter.http.settings import http_settings

FOLDERS = [
    "/usr/share/qpid-dispatch/console",
    "/usr/share/qpid-dispatch/console/",
    "/usr/share/qpid-dispatch/console/stand-alone",
    "/usr/local/share/qpid-dispatch/console/dist",
]
TEXT = "router {{ secureDefaults: {secure} }}\nlistener {{\n host: ::1\n httpRootDir: {folder}\n}}\n"


@pytest.mark.parametrize("secure", ["yes", "no"])
@pytest.mark.parametrize("folder", FOLDERS)
def test_the_own_console_is_served_and_reported_where_the_older_folder_is_absent(folder: str, secure: str) -> None:
    configuration = load(text=TEXT.format(folder=folder, secure=secure))
    (listener,) = configuration.listeners
    assert (listener.serves_http, listener.http_root_dir) == (True, folder)
    settings = http_settings(listener)
    assert (settings.root, settings.console) == (None, True)
    found = {finding.point: finding for finding in evaluate(configuration)}
    assert found["older-console"].severity is Severity.NOTE
    assert "will serve the router's own console" in found["older-console"].message
    assert "files-served" not in found


@pytest.mark.parametrize("secure", ["yes", "no"])
def test_the_older_console_is_served_where_its_folder_exists(tmp_path: Path, secure: str) -> None:
    folder = tmp_path / "share" / "qpid-dispatch" / "console"
    folder.mkdir(parents=True)
    configuration = load(text=TEXT.format(folder=folder, secure=secure))
    settings = http_settings(configuration.listeners[0])
    assert (settings.root, settings.console) == (folder, False)
    points = {finding.point for finding in evaluate(configuration)}
    assert "older-console" not in points
    assert "files-served" in points


def test_another_absent_folder_stays_an_unreadable_folder() -> None:
    for folder in ("/no/such/console", "/usr/share/qpid-dispatch/console2"):
        assert http_settings(load(text=TEXT.format(folder=folder, secure="no")).listeners[0]).root == Path(folder)
        with pytest.raises(ConfigurationError, match="cannot be read"):
            load(text=TEXT.format(folder=folder, secure="yes"))


def test_a_listener_with_http_alone_serves_the_own_console() -> None:
    listener = load(text="listener {\n host: ::1\n http: yes\n}").listeners[0]
    assert http_settings(listener).console
    assert not [
        finding
        for finding in evaluate(load(text="listener {\n host: ::1\n http: yes\n}"))
        if finding.point == "older-console"
    ]
