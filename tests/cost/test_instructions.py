"""A message costs the compiled router no more instructions than are written down: the gate of its performance."""

from __future__ import annotations

import shutil

import pytest

from tests.cost.counting import HERE, WRITTEN, counted, written
from trouter import _twin

#: By which part a message may cost more. What a change is worth is measured by `make bench`.
ALLOWED = 0.10


@pytest.mark.slow
@pytest.mark.skipif(_twin.PURE, reason="the figures are of the compiled twin")
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_a_message_costs_at_most_a_tenth_more_instructions_than_written_down() -> None:
    before = written()
    if not before:
        pytest.skip(f"{WRITTEN.name} has no figures for {HERE}: make instructions")
    now = counted()
    dearer = {case: f"{now[case] / cost - 1:+.1%}" for case, cost in before.items() if now[case] > cost * (1 + ALLOWED)}
    assert dearer == {}, f"counted {now}; if it is worth that, `make instructions` writes it down"
