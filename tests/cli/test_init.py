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


@pytest.mark.attack
@pytest.mark.parametrize("name", ["a#b", "a b", 'a"b', "'a'", "a{b}", "a, port: 1", "a\nb", "{users}", "\\u0041", "ü"])
def test_a_folder_may_have_any_name(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    path = folder / "trouter.conf"
    assert main(["init", str(path)]) == 0
    configuration = load(path)
    assert configuration.router.users_file == str(folder / "users")
    assert (folder / "users").is_file()
    opened = re.sub(r"^#(?! \S)", "", path.read_text(), flags=re.MULTILINE)
    (folder / "certs").mkdir()
    for each in ("server.crt", "server.key", "ca.crt"):
        (folder / "certs" / each).write_text("")
    (profile,) = load(path, opened).ssl_profiles
    assert profile.private_key_file == str(folder / "certs" / "server.key")
    assert profile.ca_cert_file == str(folder / "certs" / "ca.crt")


@pytest.mark.attack
def test_a_link_in_the_place_of_the_users_file_is_left_and_not_followed(tmp_path: Path) -> None:
    elsewhere, users = tmp_path / "elsewhere", tmp_path / "users"
    users.symlink_to(elsewhere)
    assert main(["init", str(tmp_path / "trouter.conf")]) == 0
    assert users.is_symlink()
    assert not elsewhere.exists()


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
