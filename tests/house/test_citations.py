"""Every rule that code and tests cite by number exists in docs/protocol."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from .sources import ROOT, named, tracked_files

PROTOCOL = ROOT / "docs" / "protocol"
PAGES = ("inter-router", "management", "routing", "security")
SOURCES = [path for path in tracked_files() if path.suffix in {".py", ".pxd"} and path != Path(__file__)]
#: A page's name and the text after it: numbers, and the words between them.
CITATION = re.compile(
    rf"\b({'|'.join(PAGES)})\.md(?:'s)?"
    r"((?:[,;]?\s+(?:sections? |and |to )?|-)(?:[RQ]-)?\d+(?:\.\d+)*[a-z]?\b)*"
)
NUMBER = re.compile(r"(?<![\w.])(?<![RQ]-)\d+(?:\.\d+)*[a-z]?\b")
#: A rule of the page on security, which may be cited without the page's name.
NAMED = re.compile(r"\b[RQ]-\d+(?:\.\d+)*[a-z]?\b")
HEADING = re.compile(r"^#+ (\d+(?:\.\d+)*[a-z]?)\b", re.MULTILINE)


@cache
def rules(page: str) -> frozenset[str]:
    """Return the numbers of a page's headings, and the names of its rules."""
    text = (PROTOCOL / f"{page}.md").read_text(encoding="utf-8")
    return frozenset(HEADING.findall(text)) | frozenset(NAMED.findall(text))


def citations(text: str) -> set[tuple[str, str]]:
    """Return each page that ``text`` names, with each number that it cites."""
    cited = {(match[1], number) for match in CITATION.finditer(text) for number in NUMBER.findall(match[0])}
    return cited | {("security", name) for name in NAMED.findall(text)}


def test_citations_are_found_in_every_form_they_have() -> None:
    text = (
        "(routing.md 1.3a, 2.7-2.9;\n security.md R-2.1b, 8.4) "
        "and inter-router.md's sections 8 and 9.1, Q-09. See 3.11."
    )
    assert citations(text) == {
        ("routing", "1.3a"),
        ("routing", "2.7"),
        ("routing", "2.9"),
        ("security", "R-2.1b"),
        ("security", "8.4"),
        ("inter-router", "8"),
        ("inter-router", "9.1"),
        ("security", "Q-09"),
    }


def test_every_cited_rule_exists() -> None:
    assert {
        (named(path), page, rule)
        for path in SOURCES
        for page, rule in citations(path.read_text(encoding="utf-8"))
        if rule not in rules(page)
    } == set()
