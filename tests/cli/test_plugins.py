"""`trouter plugins`: the installed plugins, and those that the router would load."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from trouter.cli import main

Install = Callable[[str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a distribution with one module that is a plugin."""

    def install(name: str) -> None:
        source = "from trouter.hooks import hookimpl\n@hookimpl\ndef sasl_mechanisms(listener): return ['X-OWN']\n"
        (tmp_path / f"{name}.py").write_text(source)
        information = tmp_path / f"dist_{name}-1.5.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: dist-{name}\nVersion: 1.5\n")
        (information / "entry_points.txt").write_text(f"[trouter.plugins]\n{name} = {name}\n")

    monkeypatch.syspath_prepend(str(tmp_path))
    return install


def listed(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> dict[str, dict[str, object]]:
    assert main(["plugins", "--json", *arguments]) == status
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)}


def listing(tmp_path: Path, *plugins: str) -> tuple[str, str]:
    path = tmp_path / "listing.conf"
    path.write_text(f"router {{\n    plugins: {' '.join(plugins)}\n}}\n")
    return "-c", str(path)


def test_a_plugin_of_the_router_loads(capsys: pytest.CaptureFixture[str]) -> None:
    row = listed(capsys)["sasl_plain"]
    assert row["loaded"]
    assert row["hooks"] == ["configure", "open_sasl", "refresh", "sasl_mechanisms"]
    assert row["distribution"] == "trouter"
    assert str(row["file"]).endswith("trouter_plugins/sasl_plain.py")


def test_a_listed_third_party_plugin_is_loaded(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install("cp_listed")
    assert listed(capsys)["cp_listed"]["loaded"] is False
    row = listed(capsys, *listing(tmp_path, "cp_listed"))["cp_listed"]
    assert row["loaded"]
    assert (row["hooks"], row["distribution"], row["version"]) == (["sasl_mechanisms"], "dist-cp_listed", "1.5")
    assert row["file"] == str(tmp_path / "cp_listed.py")


def test_the_entry_that_the_text_prints_can_be_listed(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install("cp_pinned")
    assert main(["plugins"]) == 0
    text = capsys.readouterr().out
    assert "cp_pinned: is not listed, and does not load\n  hooks   -\n  from    dist-cp_pinned 1.5, " in text
    entry = text.partition("list as cp_pinned")[2].split()[0]
    assert listed(capsys, *listing(tmp_path, f"cp_pinned{entry}"))["cp_pinned"]["loaded"]


def test_nothing_loads_where_the_router_would_not_start(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install("cp_changed")
    arguments = listing(tmp_path, "cp_changed@sha256:" + 64 * "0")
    assert main(["plugins", *arguments]) == 1
    text = capsys.readouterr()
    assert "no plugin loads: plugin cp_changed: its code (" in text.err
    assert "cp_changed: does not load, as no plugin does (see the last line)" in text.out
    assert main(["check", arguments[1]]) == 1
    assert "is not what is listed: sha256:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plugins: a b a", "the plugin 'a' appears twice"),
        ("plugins: a@md5:00", "'a@md5:00' does not name a plugin"),
        ("plugins: a@sha256:00", "'a@sha256:00' does not name a plugin"),
        ("pluginSettings: { a: 1 }", "the settings of 'a' must be a map"),
        ("pluginSettings: { absent: { a: 1 } }", "pluginSettings: there is no plugin absent"),
    ],
)
def test_a_bad_list_is_refused(text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.conf"
    path.write_text(f"router {{\n    {text}\n}}\n")
    assert main(["check", str(path)]) == 1
    assert message in capsys.readouterr().err
