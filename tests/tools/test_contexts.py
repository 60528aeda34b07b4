"""Saved connection settings: the values that tools use, their precedence, and the secrets that they never have."""

from __future__ import annotations

import argparse
import io
import json
import stat
import sys
from pathlib import Path

import pytest

from tests.tools.live import run
from trouter.cli import Parser
from trouter.tools.contexts import Contexts
from trouter.tools.options import ConnectionOptions, add_connection_options


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("TROUTER_BUS", raising=False)
    return tmp_path


def options(*words: str, older: bool = False) -> ConnectionOptions:
    parser = Parser()
    add_connection_options(parser, contexts=not older)
    arguments: argparse.Namespace = parser.parse_args(words)
    return ConnectionOptions.of(arguments)


async def saved(folder: Path) -> None:
    """Save two contexts; the first is in use."""
    password = folder / "password"
    password.write_text("hidden\n")
    named = ("--sasl-username", "ann", "--sasl-password-file", str(password), "-t", "3")
    assert (await run("contexts", "add", "prod", "-b", "amqp://prod:1111", *named)).out == "prod: prod:1111\n"
    assert (await run("contexts", "add", "test", "-b", "test:2222")).status == 0
    assert (await run("contexts", "use", "prod")).status == 0


async def test_tools_connect_with_the_settings_of_the_context_in_use(folder: Path) -> None:
    await saved(folder)
    found = options()
    assert (found.server, found.user, found.password, found.timeout_s) == ("prod:1111", "ann", "hidden", 3.0)
    assert options("--timeout", "4").timeout_s == 4.0
    assert options("--context", "test").server == "test:2222"
    assert options("--context", "test").user == ""
    await run("contexts", "use")
    assert options().server == "0.0.0.0:5672"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


async def test_a_person_is_told_that_a_context_is_in_use(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await saved(folder)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    options("--context", "test")
    options("-b", "other:1")
    assert terminal.getvalue() == ""
    options()
    assert terminal.getvalue() == "trouter: uses the saved context prod; `trouter contexts use` ends that\n"


async def test_a_server_named_otherwise_gets_nothing_of_the_context_in_use(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await saved(folder)
    assert (options("-b", "other:1").server, options("-b", "other:1").user) == ("other:1", "")
    assert (options(older=True).server, options(older=True).user) == ("0.0.0.0:5672", "")
    assert options("--sasl-username", "bob", "--sasl-password", "bobs").password == "bobs"
    monkeypatch.setenv("TROUTER_BUS", "environment:3")
    assert (options().server, options().user) == ("environment:3", "")
    assert options("--context", "prod").server == "prod:1111"


async def test_the_file_is_its_owners_and_holds_no_password(folder: Path) -> None:
    await saved(folder)
    file = folder / "trouter" / "contexts.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "hidden" not in file.read_text()
    for secret in (("-b", "amqp://u:secret@h"), ("--sasl-password", "secret"), ("--ssl-password", "secret")):
        refused = await run("contexts", "add", "bad", *secret)
        assert (refused.status, refused.out) == (1, "")
        assert "password-file" in refused.err
        assert "secret" not in refused.err + file.read_text()


async def test_a_file_that_cannot_be_replaced_leaves_no_other_behind(folder: Path) -> None:
    saved_in = folder / "trouter"
    (saved_in / "contexts.json" / "taken").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        Contexts(saved_in / "contexts.json").save()
    assert [each.name for each in saved_in.iterdir()] == ["contexts.json"]


async def test_contexts_are_listed_shown_and_removed(folder: Path) -> None:
    await saved(folder)
    listed = (await run("contexts", "list")).lines
    assert [line.split() for line in listed[3:]] == [["*", "prod", "amqp://prod:1111", "ann"], ["test", "test:2222"]]
    assert json.loads((await run("contexts", "show", "test")).out) == {"bus": "test:2222"}
    assert (await run("contexts", "remove", "prod")).status == 0
    assert "contexts use NAME" in (await run("contexts", "show")).err
    missing = (await run("contexts", "show", "prod")).err
    assert missing == "trouter contexts show: there is no context 'prod'; known: test\n"
    (folder / "trouter" / "contexts.json").write_text("[]")
    assert "is not a file of contexts" in (await run("contexts", "list")).err
    assert (await run("contexts", "forget")).status == 2


async def test_the_printed_versions_are_those_of_the_running_packages() -> None:
    found = json.loads((await run("version", "--json")).out)
    assert {"trouter", "twin", "python", "trio", "proton", "libsasl2", "spark", "plugins"} <= found.keys()
    assert found["plugins"]["sasl_plain"].startswith("trouter ")
    assert f"trouter    {found['trouter']}" in (await run("version")).out
