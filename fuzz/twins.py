"""Any octets from a peer are answered alike by the compiled engine and the interpreted one: events, frames, windows.

The input is that of the target `engine`. Allowed: nothing; what one twin raises, the other would have to raise as well,
and the target `engine` allows neither.
"""

from __future__ import annotations

from fuzz.parts.transcript import other, transcript
from trouter.testing.fuzz import behind, frames

MUTATOR = behind(2, frames)


def check(data: bytes) -> None:
    here = transcript(data)
    there = other().transcript(data)
    for line, other_line in zip(here.split(b"\n"), there.split(b"\n"), strict=False):
        assert line == other_line
    assert here == there
    assert not here.endswith(b"Error: ")
