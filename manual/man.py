"""Write the manual's pages on the commands and the configuration for `man`.

`make man` calls it with two folders. Below the first it writes `man1/trouter-stat.1`, `man5/qdrouterd.conf.5` and so
on, below the second the pages on the commands of the pipeline, which is a distribution of its own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import trouter
from manual import commands
from manual.configuration import pages as configuration_pages
from trouter.cli import ELSEWHERE

#: Programs that run as a daemon, with their section; all others are commands of users.
DAEMONS: Final = {"qdrouterd": 8}
FILE: Final = "qdrouterd.conf"
#: The kinds of blocks of a page; the first match counts.
BLOCK: Final = re.compile(
    r"(?P<fence>^```\w*\n(?s:.*?)^```$)|(?P<table>(?:^\|.*\n?)+)|(?P<heading>^#+ .*$)|(?P<items>(?:^(?:- |  ).*\n?)+)"
    r"|(?P<text>(?:^(?!```|\||#+ |- ).+\n?)+)",
    re.MULTILINE,
)
#: Markdown within a line; the first group is kept.
INLINE: Final = (
    re.compile(r"\[([^\]]+)\]\([^)]*\)"),
    re.compile(r"\*\*([^*]+)\*\*"),
    re.compile(r"(?<!\\)\*([^*\n]+)(?<!\\)\*"),
)


def pages() -> dict[str, str]:
    """Return every manual page, by its name and section: `qdrouterd.conf.5`."""
    made = {
        f"{name}.{section}": _page(name, section, text)
        for name, text in commands.pages().items()
        for section in [DAEMONS.get(name, 1)]
    }
    return made | {f"{FILE}.5": _page(FILE, 5, _file())}


def write(folder: Path, elsewhere: Path) -> None:
    """Write all pages, in a folder for each section: below ``elsewhere`` those on commands of other distributions."""
    for name, text in pages().items():
        ours = name.rpartition(".")[0].removeprefix("trouter-") not in ELSEWHERE
        path = (folder if ours else elsewhere) / f"man{name.rpartition('.')[2]}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _file() -> str:
    """Return all pages on the configuration as one: the page about the file, then the sections, each a level deeper."""
    told = configuration_pages()
    about = told.pop("configuration.md").partition("## Sections")[0].split("\n", 2)[2]
    about, told = _without_note(about), {name: _without_note(text) for name, text in told.items()}
    sections = "\n".join(re.sub(r"^#", "##", text, flags=re.MULTILINE) for text in told.values())
    return f"# {FILE}\n\nThe configuration of the router, as trouter and qdrouterd read it.\n\n{about}\n{sections}"


def _without_note(text: str) -> str:
    """Return a page without its note on how it was generated."""
    return re.sub(r"^\*This page is written.*?\*\n\n", "", text, flags=re.MULTILINE | re.DOTALL)


def _page(name: str, section: int, text: str) -> str:
    """Return a page of Markdown as roff; `man` needs its heading, first paragraph and first block first."""
    blocks = [*_blocks(text)]
    (_, _), (_, description), *rest = blocks
    sentence = description.partition(". ")[0].rstrip(".")
    lines = [f'.TH "{name.upper()}" "{section}" "" "trouter {trouter.__version__}" "trouter manual"', ".SH NAME"]
    lines += [rf"{_words(name)} \- {_words(sentence[:1].lower() + sentence[1:])}"]
    if rest and rest[0][0] == "fence":
        lines += [".SH SYNOPSIS", *_fence(rest.pop(0)[1].replace("usage: ", "", 1))]
    lines += [".SH DESCRIPTION", *_paragraph(description)]
    for kind, block in rest:
        lines += BLOCKS[kind](block)
    others = sorted({"trouter(1)", "qdrouterd(8)", "qdrouterd.conf(5)"} - {f"{name}({section})"})
    return "\n".join([*lines, ".SH SEE ALSO", ", ".join(others), ""])


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    for match in BLOCK.finditer(text):
        yield str(match.lastgroup), match[0].strip("\n")


def _words(text: str) -> str:
    """Return text within a line as roff: code is bold, roff's control characters are escaped."""
    for pattern in INLINE:
        text = pattern.sub(r"\1", text)
    text = re.sub(r"\\([|*])", r"\1", text).replace("&lt;", "<").replace("\\", r"\e").replace("-", r"\-")
    text = re.sub(r"`([^`]+)`", r"\\fB\1\\fR", text)
    return rf"\&{text}" if text.startswith((".", "'")) else text


def _paragraph(block: str) -> list[str]:
    return [".PP", *map(_words, block.splitlines())]


def _heading(block: str) -> list[str]:
    """Return a heading: sections, subsections, and deeper ones as a line of their own."""
    level, _, title = block.partition(" ")
    shown = _words(title).replace('"', "")
    macros = {"##": f'.SH "{shown.upper()}"', "###": f'.SS "{shown}"'}
    return [macros[level]] if level in macros else [".PP", rf"\fB{shown}\fR"]


def _fence(block: str) -> list[str]:
    lines = [line.replace("\\", r"\e").replace("-", r"\-") for line in block.splitlines() if not line.startswith("```")]
    return [".PP", ".nf", *(rf"\&{line}" if line.startswith((".", "'")) else line for line in lines), ".fi"]


def _items(block: str) -> list[str]:
    """Return a list as roff."""
    lines: list[str] = []
    for line in block.splitlines():
        if line.startswith("- "):
            lines += [r".IP \(bu 2"]
        lines += [_words(line[2:])]
    return lines


def _table(block: str) -> list[str]:
    """Return a table as roff: each row becomes a term, and its other cells the text, last one first.

    A cell below a heading begins with that heading.
    """
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in block.splitlines()]
    titles, _, *body = rows
    lines: list[str] = []
    for first, *others in body:
        told = [f"{title}: {cell}." if title else cell for title, cell in zip(titles[1:], others, strict=True) if cell]
        lines += [".TP", _words(first), *(map(_words, [*told[-1:], *told[:-1]]) if told else [r"\&"])]
    return lines


BLOCKS: Final = {"fence": _fence, "table": _table, "heading": _heading, "items": _items, "text": _paragraph}

if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
