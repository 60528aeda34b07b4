"""Hooks of mkdocs for the site of the manual: they add pages beside those in docs/."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from manual import commands

ROOT: Final = Path(__file__).resolve().parents[1]
#: The folder of the site for files of the repository that pages link to.
REPOSITORY: Final = "repository"
#: The folder of the site for the pages of the commands, which are written from their parsers.
COMMANDS: Final = "reference/commands"
#: `[text](target)` or `[text](target#anchor)` with a target on this host.
LINK: Final = re.compile(r"\[([^\]\n]*)\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages of the commands and of the sections of the configuration to the navigation."""
    sections = sorted(path.name for path in (ROOT / "docs" / "reference").glob("*.md"))
    chapters = _chapters(config.nav or [])
    chapters["Configuration"] += [f"reference/{name}" for name in sections]
    chapters["Commands"] += [f"{COMMANDS}/{name}.md" for name in sorted(commands.pages())]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each command, and for each file of the repository that a page of the manual links to."""
    for name, text in commands.pages().items():
        files.append(File.generated(config, f"{COMMANDS}/{name}.md", content=text))
    linked = {
        name
        for file in files.documentation_pages()
        if not file.generated_by
        for name in _linked(file.src_uri, (ROOT / "docs" / file.src_uri).read_text(encoding="utf-8"))
    }
    for name in sorted(linked):
        files.append(File.generated(config, _page_of(name), content=_shown(name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to files of the repository at their pages, and use titles as the text of links to pages."""
    here = posixpath.dirname(page.file.src_uri)

    def led(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        name = _outside(page.file.src_uri, target)
        if name is not None:
            return f"[{text}]({posixpath.relpath(_page_of(name), here or '.')}{anchor})"
        if text == posixpath.basename(target) and text.endswith(".md"):
            text = _title(posixpath.normpath(posixpath.join(here, target)))
        return f"[{text}]({target}{anchor})"

    return markdown if page.file.generated_by else LINK.sub(led, markdown)


def _chapters(nav: list[Any]) -> dict[str, list[Any]]:
    """Return the lists of the navigation by their titles, at every level."""
    named = [item for entry in nav if isinstance(entry, dict) for item in entry.items() if isinstance(item[1], list)]
    return {title: below for name, items in named for title, below in [(name, items), *_chapters(items).items()]}


def _linked(page: str, text: str) -> Iterator[str]:
    for match in LINK.finditer(text):
        name = _outside(page, match[2])
        if name is not None:
            yield name


def _outside(page: str, target: str) -> str | None:
    """Return the name of the repository's file that a link points to; None if it is in docs/."""
    name = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    return None if name.startswith("docs/") or not (ROOT / name).exists() else name


def _page_of(name: str) -> str:
    return f"{REPOSITORY}/{name}.md"


def _shown(name: str) -> str:
    """Return a file as a page with its text, or a folder as a page with a list of its files."""
    path = ROOT / name
    if path.is_dir():
        listed = "".join(
            f"- `{each.name}`\n" for each in sorted(path.iterdir()) if not each.name.startswith((".", "__"))
        )
        return f"# {name}\n\nThe files of this folder in the repository:\n\n{listed}"
    return f"# {name}\n\n``````{path.suffix.removeprefix('.')}\n{path.read_text(encoding='utf-8').rstrip()}\n``````\n"


@cache
def _title(page: str) -> str:
    """Return the heading of a page in docs/."""
    path = ROOT / "docs" / page
    heading = re.search(r"^# (.*)", path.read_text(encoding="utf-8"), re.MULTILINE) if path.is_file() else None
    return heading[1] if heading else posixpath.basename(page)
