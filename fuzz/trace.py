"""Any bytes, in any pieces, give the same lines of trace: printable, short, and without the secrets of SASL.

The first byte chooses the size of the pieces and whether the trace begins midway.

Allowed: nothing. A trace must not disturb the connection that it shows.
"""

from __future__ import annotations

import re

from trouter.logs.frame_trace import KEPT_BYTES, FrameTrace
from trouter.testing.fuzz import behind, frames
from trouter.wire.codec import encode
from trouter.wire.framing import FRAME_SASL, frame
from trouter.wire.types import Described, Symbol, ULong
from trouter.wire.value_text import MAX_SHOWN

MUTATOR = behind(1, frames)
COVERS = ("trouter.logs.frame_trace", "trouter.wire.value_text")

SECRET = "open-sesame"
MOST_KEPT = KEPT_BYTES + 64


def lines_of(stream: bytes, step: int, midway: bool) -> list[str]:
    lines: list[str] = []
    trace = FrameTrace("[C1]", lines.append, midway=midway)
    for start in range(0, len(stream), step):
        trace.received(stream[start : start + step])
        trace.sent(stream[start : start + step])
    for each in (trace._in, trace._out):
        assert len(each._kept) + len(each._head) <= MOST_KEPT
    received = [line for line in lines if re.match(r"\S+\s+(\d+ )?<-", line)]
    sent = [line for line in lines if re.match(r"\S+\s+(\d+ )?->", line)]
    assert len(received) == len(sent) == len(lines) // 2
    return received


def check(data: bytes) -> None:
    how = data[0] if data else 0
    stream = data[1:]
    midway = bool(how & 1)
    whole = lines_of(stream, len(stream) or 1, midway)
    assert lines_of(stream, (how >> 1) or 1, midway) == whole
    for line in whole:
        assert line.isprintable()
        assert len(line) <= MAX_SHOWN + 100
    # The response stays hidden, whatever the fields of a SASL frame contain and whatever bytes follow it.
    init = Described(ULong(0x41), [Symbol("PLAIN"), [SECRET, stream[:64]], "h", SECRET])
    hidden = frame(how, encode(init) + SECRET.encode(), FRAME_SASL)
    assert SECRET not in "".join(lines_of(hidden, (how >> 1) or 1, False))
