"""`trouter init`: it writes a configuration that passes `check --strict`, and overwrites nothing."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from trouter.cli import main
from trouter.config import load


def test_the_new_configuration_is_safe_and_private(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trouter.conf"
    assert main(["init", str(path)]) == 0
    assert main(["check", "--strict", str(path)]) == 0, capsys.readouterr().err
    configuration = load(path)
    assert configuration.router.secure_defaults
    assert configuration.policy.enable_vhost_policy
    assert all(listener.authenticate_peer for listener in configuration.listeners)
    assert [stat.S_IMODE(file.stat().st_mode) for file in (path, tmp_path / "users")] == [0o600, 0o600]


def test_no_listener_takes_a_password_itself(tmp_path: Path) -> None:
    path = tmp_path / "trouter.conf"
    main(["init", str(path)])
    offered = {listener.name: set(listener.sasl_mechanisms) for listener in load(path).listeners}
    assert len(offered) == 2
    assert all(names <= {"SCRAM-SHA-512", "SCRAM-SHA-256"} for names in offered.values()), offered
    console = (ROOT / "docs" / "console.md").read_text(encoding="utf-8")
    assert (
        "| SCRAM-SHA-256, SCRAM-SHA-512, SCRAM-SHA-1 | name and password, which never leaves the browser |" in console
    )


def test_the_commented_settings_load_too(tmp_path: Path) -> None:
    path = tmp_path / "trouter.conf"
    main(["init", str(path)])
    text = re.sub(r"^#(?! \S)", "", path.read_text(), flags=re.MULTILINE)
    certs = tmp_path / "certs"
    certs.mkdir()
    for name in ("server.crt", "server.key", "ca.crt"):
        (certs / name).write_text("")
    listeners = load(path, text).listeners
    assert [listener.require_ssl for listener in listeners] == [False, False, True]


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trouter.conf"
    path.write_text("# mine\n")
    assert main(["init", str(path)]) == 1
    assert capsys.readouterr().err == f"trouter init: {path} exists already, and is left as it is\n"
    assert path.read_text() == "# mine\n"
    assert not (tmp_path / "users").exists()


def test_a_users_file_that_is_there_is_kept(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("# mine\n")
    assert main(["init", str(tmp_path / "trouter.conf")]) == 0
    assert (tmp_path / "users").read_text() == "# mine\n"


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path / "no" / "trouter.conf")]) == 1
    assert "cannot be written: No such file or directory" in capsys.readouterr().err
