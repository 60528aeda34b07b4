"""docs/logging.md agrees with the code."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path

from tests.logs.talk import configured, entities
from tests.script import encode
from trouter.logs.book import KEPT, MAX_TEXT_BYTES, LogLine
from trouter.logs.frame_trace import FrameTrace
from trouter.logs.handler import BEGINNING, STARTS_WITH
from trouter.logs.levels import MODULES, NUMBERS
from trouter.logs.lines import MAX_TEXT, MAX_TRACEBACK, Shape, line_of
from trouter.logs.loggers import OTHERS
from trouter.wire.framing import AMQP_HEADER
from trouter.wire.performatives import Transfer

PAGE = (Path(__file__).parents[2] / "docs" / "logging.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_module_and_every_level_is_reported() -> None:
    rows = re.findall(r"^\| ([A-Z][A-Z_, ]+) \|", PAGE, re.MULTILINE)
    assert sorted(name for row in rows for name in row.split(", ")) == sorted({*MODULES, *OTHERS} - {"DEFAULT"})
    assert f"`{' '.join(NUMBERS)}`" in PAGE


def test_the_defaults_equal_the_page() -> None:
    (text,) = (block for _, block in BLOCKS if "module: DEFAULT" in block)
    (default,) = (each for each in entities(text) if each.module == "DEFAULT")
    told = ("module", "enable", "include_timestamp", "include_source", "output_file", "format")
    assert [getattr(default, name) for name in told] == [getattr(STARTS_WITH, name) for name in told]
    assert configured(text).state.modules["DEFAULT"] == BEGINNING.modules["DEFAULT"]


def test_the_examples_of_lines_are_lines() -> None:
    text = BLOCKS[0][1].rstrip("\n")
    entry = LogLine("ROUTER_CORE", "info", text.partition("(info) ")[2], "", 0, 1769903999.123456)
    clock = replace(BEGINNING.clock, zone=time.gmtime)
    shape = Shape(timestamp=True, source=False)
    assert line_of(entry, "", shape, clock) == text
    ((_, example),) = (block for block in BLOCKS if block[0] == "json")
    cut = replace(entry, text=json.loads(example)["text"])
    assert line_of(cut, "", replace(shape, json=True), clock) == example.rstrip("\n")


def test_the_example_of_frames_equals_the_written_lines() -> None:
    (text,) = (block for _, block in BLOCKS if "EMPTY FRAME" in block)
    told = [f"PROTOCOL (trace) {line}" for line in frames()]
    assert [line for line in text.splitlines() if "open" not in line] == told


def frames() -> list[str]:
    lines: list[str] = []
    trace = FrameTrace("[C5]", lines.append)
    trace.received(AMQP_HEADER)
    nulls: dict[str, None] = dict.fromkeys(("more", "resume", "aborted", "batchable"))
    transfer = Transfer(0, 0, b"1", settled=True, **nulls)  # type: ignore[arg-type]  # absent on the wire
    trace.sent(encode(transfer, payload=bytes(1024)))
    trace.received(b"\x00\x00\x00\x08\x02\x00\x00\x00")
    return lines


def test_the_page_names_the_bounds_of_the_code() -> None:
    for bound in (KEPT, MAX_TEXT_BYTES, MAX_TEXT, MAX_TRACEBACK):
        assert re.search(rf"\b{bound}\b", PAGE)
