"""The manual as a site: it builds without a warning, and loads from no other host. Links between pages are valid."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.house.sources import ROOT, tracked_files

pytest.importorskip("mkdocs", reason="make venv installs it")

#: Resources that a browser loads by itself: tag -> attribute.
FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
#: The pages of the site of 0.2.0, one a line: others link to them.
PUBLISHED = Path(__file__).with_name("published_pages.txt").read_text(encoding="utf-8").split()
PAGES = [path for path in tracked_files() if path.suffix == ".md"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make docs` does: a bad link, a bad anchor or a page outside the navigation is an error."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    return folder


class Fetched(HTMLParser):
    """The addresses that a browser loads to show a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("rel") not in {"canonical", "prev", "next"}:
            self.addresses.append(given.get(FETCHED.get(tag, ""), "") or "")


def test_the_site_loads_nothing_from_other_hosts(site: Path) -> None:
    assert Fetched('<script src="https://host.example/x.js">').addresses == ["https://host.example/x.js"]
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(list((ROOT / "docs").rglob("*.md")))
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not [each for each in Fetched(text).addresses if re.match(r"(\w+:)?//", each)], page
        assert 'class="mermaid"' not in text, f"{page}: the program that draws it is on another host"


def test_pages_keep_their_addresses(site: Path) -> None:
    assert len(PUBLISHED) > 90
    names = [re.sub(r"README\.md$", "index.md", page).removesuffix(".md") for page in PUBLISHED]
    assert [name for name in names if not (site / f"{name}.html").is_file()] == []


def test_the_four_parts_stand_in_order_and_what_engineers_read_apart() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    parts = ["Home", "Tutorial", "How-to guides", "Reference", "Explanation", "For engineers"]
    assert re.findall(r"^  - ([^:\n]+):", text, re.MULTILINE) == parts
    operators = text.partition("  - For engineers:")[0]
    assert "protocol/" not in operators
    assert "decisions/" not in operators


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as forges and the site generate them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", each).lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_of_the_project(page: Path) -> None:
    # A piece of news has its links as seen from CHANGELOG.md, of which it becomes a part.
    folder = ROOT if page.parent.name == "changes" and page.name != "README.md" else page.parent
    for target, anchor in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        path = (folder / target) if target else page
        assert path.exists(), target
        assert not anchor or path.suffix != ".md" or anchor in anchors(path), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_list_has_an_empty_line_above(page: Path) -> None:
    """Without the empty line forges show a list and the site a paragraph."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    assert re.findall(r"^(?![-\s]|\d+\. )[^\n]+\n(- [^\n]*)", text, re.MULTILINE) == []
