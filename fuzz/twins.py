"""Any bytes from a peer give the same events, frames and windows in the compiled engine and in the interpreted one.

The input is that of the target `engine`. Allowed: nothing; the target `engine` allows no exception either.
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
