"""The fuzz target holds for inputs that Hypothesis makes, and that it makes small if one fails."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given

from trouter.testing.fuzz import load_file
from trouter.testing.fuzz.strategies import inputs

TARGET = load_file(Path(__file__).parents[1] / "fuzz" / "tickets.py")


@given(inputs(TARGET))
def test_any_response_is_answered(data: bytes) -> None:
    TARGET.check(data)
