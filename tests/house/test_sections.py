"""Only the room wire knows by which codes and symbols the sections of a message are found (AMQP 1.0 part 3, 3.2)."""

from __future__ import annotations

import ast
import re
import tokenize
from pathlib import Path

import pytest

from tests.house.sources import PACKAGE, PACKAGES, ROOT, named, tracked_files
from trouter.wire.constants import SECTION_SYMBOLS

#: Here the same numbers are format codes of values.
FORMAT_CODES = {"pipeline/src/trouter_pipeline/fields.py"}
CODE = re.compile(r"0x7[0-8]", re.IGNORECASE)
HEAD = re.compile(rb"\x00\x53[\x70-\x78]")
SYMBOL = re.compile("|".join(map(re.escape, SECTION_SYMBOLS)))
SOURCES = [
    path
    for path in tracked_files()
    if path.suffix in {".py", ".pxd"}
    and {*PACKAGES, ROOT / "plugins"} & set(path.parents)
    and path.parent != PACKAGE / "wire"
]


def sections_in(path: Path) -> list[str]:
    """Return the codes, heads and symbols of sections that a source has as literals."""
    text = path.read_text(encoding="utf-8")
    if not re.search(r"0x7|x53|amqp:", text, re.IGNORECASE):
        return []
    found = []
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.NUMBER and CODE.fullmatch(token.string):
                found.append(token.string)
            elif token.type == tokenize.STRING and not token.string.startswith(("f", '"""')):
                value = ast.literal_eval(token.string)
                found += (HEAD if isinstance(value, bytes) else SYMBOL).findall(value)
    return found


def test_no_other_room_finds_sections_by_their_codes() -> None:
    assert len(SOURCES) > 500
    found = {named(path): sections_in(path) for path in SOURCES}
    assert {name: each for name, each in found.items() if each and name not in FORMAT_CODES} == {}


def test_files_with_format_codes_still_have_some() -> None:
    assert all(sections_in(ROOT / name) for name in FORMAT_CODES)


@pytest.mark.parametrize("line", ["_DATA = 0x75", 'head = b"\\0\\x53\\x77\\x40"', 'name = "amqp:footer:map"'])
def test_a_code_a_head_and_a_symbol_are_seen(tmp_path: Path, line: str) -> None:
    source = tmp_path / "source.py"
    source.write_text(f"{line}\nport = 5672\n")
    assert len(sections_in(source)) == 1
