"""The commands and configurations in the manual and the README are valid: parsers accept them.

Pages whose commands run from top to bottom have tests of their own; here no command is run.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from manual.commands import subcommands
from tests.house.sources import ROOT
from trouter.cli import COMMANDS, ELSEWHERE, parser
from trouter.cli.names import PROGRAMS
from trouter.config.load import load

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: A command: at the start of a line of a block, with or without a prompt; in a text it is inline code.
TYPED = re.compile(r"^(?:\$ )?(?:! )?(?:\S+ \| )?((?:trouter|qdstat|qdmanage|qdrouterd) .*)", re.MULTILINE)
PROMPTED = re.compile(r"^\$ .*", re.MULTILINE)
NAMED = re.compile(r"`((?:trouter|qdstat|qdmanage|qdrouterd) [^`]+)`")
#: Tokens at which a shell splits commands.
SPLIT = {"|", "||", "&", "&&", ";", ">", ">>", "<", "("}
SECTION = re.compile(r"\A(?:\s*#.*\n)*\w+ \{")
#: The files that a configuration names by a path below its own folder.
FILE = re.compile(r"[:\s](?:file:)?((?:certs/)?[\w-]+\.(?:crt|key|pem|json))$", re.MULTILINE)
#: Placeholders that a reader fills in.
OPEN = re.compile(r"\.\.\.|\*|…|\[")


def commands() -> Iterator[tuple[str, str, bool]]:
    """Yield every page with each command on it, and whether the command is complete."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        name = str(page.relative_to(ROOT))
        for language, block in FENCE.findall(text):
            if language in {"", "sh", "console"} and not SECTION.match(block):
                yield from ((name, each, True) for each in TYPED.findall(_typed(block.replace("\\\n", " "))))
        yield from ((name, each, False) for each in NAMED.findall(FENCE.sub("", text)))


def _typed(block: str) -> str:
    """Return a block without what commands print: where there are prompts, only lines with one are typed."""
    return "\n".join(PROMPTED.findall(block)) or block


@cache
def understanding(program: str, *, whole: bool) -> argparse.ArgumentParser:
    """Return the parser of a program, without checks of files; an incomplete command may lack arguments."""
    made = parser() if program == "trouter" else PROGRAMS[program]()
    _loosen(made, whole=whole)
    return made


def _loosen(command: argparse.ArgumentParser, *, whole: bool) -> None:
    for action in command._actions:
        action.type = None
        action.required = action.required and whole
        if not whole and isinstance(action, argparse._StoreAction) and action.nargs is None:
            action.nargs = "?"
    for group in command._mutually_exclusive_groups:
        group.required = group.required and whole
    for _, below in subcommands(command):
        _loosen(below, whole=whole)


def words_of(command: str) -> list[str]:
    """Return the words of the first command of a line, without the explanation behind several blanks."""
    first = re.sub(r"\s\d>", " >", re.split(r"\s{3,}", command)[0])
    lexer = shlex.shlex(first, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    return words[: next((place for place, word in enumerate(words) if word in SPLIT), len(words))]


@pytest.mark.parametrize(("page", "command", "whole"), sorted(set(commands())))
def test_a_command_is_understood(page: str, command: str, whole: bool, capsys: pytest.CaptureFixture[str]) -> None:
    program, *words = words_of(command) if not OPEN.search(command) else command.split()[:2]
    whole = whole and not OPEN.search(command)
    if program == "trouter":
        assert words[0].startswith("-") or words[0].isupper() or words[0] in {*COMMANDS, *ELSEWHERE}, (
            f"{page}: {command}"
        )
    if words[0].isupper() or {"-h", "--help", "--version"} & {*words}:
        return
    try:
        understanding(program, whole=whole).parse_args(words)
    except SystemExit:
        pytest.fail(f"{page}: {command}: {capsys.readouterr().err}")


def configurations() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for language, block in FENCE.findall(page.read_text(encoding="utf-8")):
            if language in {"", "conf"} and SECTION.match(block):
                yield str(page.relative_to(ROOT)), block


@pytest.mark.parametrize(("page", "text"), [*configurations()])
def test_a_configuration_is_read(page: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that names the role of a router is completed to a network; the files that the part names are made."""
    monkeypatch.chdir(tmp_path)
    for name in FILE.findall(text):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    whole = text.replace("sha256:...", f"sha256:{'0' * 64}").replace(", ...", "")
    if re.search(r"role: (inter-router|edge)", text) and "router {" not in text:
        whole += "router { mode: interior }\n"
    assert load(text=whole).router.id, page


def test_there_are_commands_and_configurations() -> None:
    assert len({*commands()}) > 200
    assert len([*configurations()]) > 30
