"""Every file and function that docs/architecture.md names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from .sources import PACKAGE, PACKAGES, PIPELINE_PACKAGE, ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
#: `room/module.py`, or `room/module.py:name`, or `room/module.py:Class.name`.
CITED = re.compile(r"`([\w./-]+\.(?:py|pxd|md|toml|tsx?))(?::([\w.]+))?`")
#: A row of a table of rooms: the room, and the files in it to read first.
ROW = re.compile(r"^\| `(\w+)/` \|.*\| ([^|]+) \|$", re.MULTILINE)
FOLDER = re.compile(r"`((?:trouter/)?\w+(?:/\w+)*)/`")
CITATIONS = sorted({(match[1], match[2] or "") for match in CITED.finditer(ROW.sub("", PAGE))})


def located(name: str) -> Path | None:
    """Return the file or folder that the page calls ``name``: within a package, or from the root."""
    return next((place for place in (PACKAGE / name, PIPELINE_PACKAGE / name, ROOT / name) if place.exists()), None)


@cache
def defined_in(path: Path) -> frozenset[str]:
    """Return the functions, classes, methods and constants of a module, as the page names them."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names |= _names(node)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{inner}" for each in node.body for inner in _names(each)}
    return frozenset(names)


def _names(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {each.id for each in targets if isinstance(each, ast.Name)}


@pytest.mark.parametrize(("name", "what"), CITATIONS, ids=lambda part: part or "-")
def test_every_file_and_name_on_the_page_exists(name: str, what: str) -> None:
    path = located(name)
    assert path is not None, name
    if what:
        assert what in defined_in(path), f"{name} has no {what}"


def test_the_rooms_and_the_modules_to_look_at_first_exist() -> None:
    rows = ROW.findall(PAGE)
    rooms = {path.parent.name: path.parent for package in PACKAGES for path in package.glob("*/__init__.py")}
    assert {room for room, _ in rows} == rooms.keys()
    for room, named in rows:
        for name in re.findall(r"`([\w./]+)`", named):
            assert (rooms[room] / name).exists(), f"{room}/{name}"


def test_each_folder_that_is_named_exists() -> None:
    assert [name for name in FOLDER.findall(ROW.sub("", PAGE)) if located(name) is None] == []


def test_where_to_look_answers_each_question_in_one_sentence() -> None:
    table = PAGE[PAGE.index("## Where to look") : PAGE.index("## One transfer")]
    answers = re.findall(r"^\| .*\? \| (.*) \|$", table, re.MULTILINE)
    assert len(answers) > 30
    assert [
        answer for answer in answers if re.search(r"\w[.)`]* [A-Z]", answer.replace("`", "")) and ". " in answer
    ] == []


def test_a_name_that_is_gone_would_be_found() -> None:
    assert len(CITATIONS) >= 60
    assert "CreditAccount.grant_credit" in defined_in(PACKAGE / "core" / "incoming_parts.py")
    assert "CreditAccount.gone" not in defined_in(PACKAGE / "core" / "incoming_parts.py")
