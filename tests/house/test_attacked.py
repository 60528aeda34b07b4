"""The page of attacks links to every module with tests of attacks, and `make test` runs them too."""

from __future__ import annotations

import re

from tests.house.sources import ROOT, named, tracked_files

PAGE = (ROOT / "docs" / "attacked.md").read_text(encoding="utf-8")
MARK = re.compile(r"\bmark\.attack\b")
#: Marks of tests that `make test` leaves out.
LEFT_OUT = re.compile(r"\bmark\.(long|pipeline_long)\b")
MODULES = {
    named(path): path.read_text(encoding="utf-8")
    for path in tracked_files()
    if path.name.startswith("test_") and path.suffix == ".py" and path.parent.name != "house"
}


def test_the_page_of_attacks_links_to_each_module_with_the_mark() -> None:
    linked = set(re.findall(r"\]\(\.\./([\w/]+\.py)\)", PAGE))
    assert linked == {name for name, text in MODULES.items() if MARK.search(text)}


def test_make_test_runs_every_module_with_the_mark() -> None:
    assert [name for name, text in MODULES.items() if MARK.search(text) and LEFT_OUT.search(text)] == []
