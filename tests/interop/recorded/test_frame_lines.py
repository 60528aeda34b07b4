"""Frames in the log in Qpid Dispatch's form: its recorded frames, beside the lines that it wrote about them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest

from trouter.logs.frame_trace import FrameTrace

#: ``from`` is the side; then the frame's ``octets``, and the ``line`` without time and payload.
FRAMES: Final = json.loads((Path(__file__).parent / "data" / "frames.json").read_text(encoding="utf-8"))
#: The pattern by which a program that draws conversations parses such a line.
HEAD: Final = re.compile(r"\[C(\d+)\]:FRAME: (\d+| ) (<-|->) (.*)")
SIZE: Final = re.compile(r"\] \((\d+)\) \"")


def shown(frame: dict[str, str]) -> str:
    lines: list[str] = []
    trace = FrameTrace("[C1]", lines.append)
    (trace.received if frame["from"] == "dialler" else trace.sent)(bytes.fromhex(frame["octets"]))
    (line,) = lines
    return line


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame["line"][:40])
def test_a_frame_reads_as_there(frame: dict[str, str]) -> None:
    assert shown(frame).removesuffix(' "..."') == f"[C1]:{frame['line']}"


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame["line"][:40])
def test_its_line_can_be_taken_apart(frame: dict[str, str]) -> None:
    found = HEAD.fullmatch(shown(frame))
    assert found is not None
    number, channel, arrow, text = found.groups()
    assert (number, arrow) == ("1", "<-" if frame["from"] == "dialler" else "->")
    assert channel.strip().isdigit() or text in ("AMQP", "SASL")
    assert text.count('"') % 2 == 0
    assert all(text.count(opened) == text.count(closed) for opened, closed in ("[]", "{}", "()"))
    assert ("@transfer(20)" in text) == (SIZE.search(text) is not None)


def test_quotes_within_a_text_do_not_end_the_text() -> None:
    name = 'a"b\\c'
    body = b"\x00\x53\x10\xc0" + bytes([len(name) + 3, 1, 0xA1, len(name)]) + name.encode()
    frame = (len(body) + 8).to_bytes(4, "big") + b"\x02\x00\x00\x00" + body
    line = shown({"from": "dialler", "octets": frame.hex()})
    assert line == r'[C1]:FRAME: 0 <- @open(16) [container-id="a\x22b\x5cc"]'
