"""What repeats is told one by one a few times a second, and then together."""

from __future__ import annotations

from collections.abc import Callable

from trouter.telemetry import repeats
from trouter.telemetry.repeats import Repeats

Told = list[tuple[str, int]]


def teller(told: Told, what: str) -> Callable[[int], None]:
    return lambda count: told.append((what, count))


def test_the_first_events_are_reported_one_by_one_and_later_ones_together() -> None:
    made, told = Repeats(), Told()
    for number in range(6):
        made.happened("x", 2, teller(told, str(number)))
    made.happened("y", 2, teller(told, "y"))
    assert told == [("0", 1), ("1", 1), ("y", 1)]
    made.write()
    assert told[3:] == [("2", 4)]
    made.write()
    assert len(told) == 4
    made.happened("x", 2, teller(told, "again"))
    assert told[4:] == [("again", 1)]


def test_no_more_subjects_are_counted_than_there_is_room_for() -> None:
    made, told = Repeats(), Told()
    for number in range(repeats.MAX_SUBJECTS + 2):
        for _ in range(2):
            made.happened(number, 1, teller(told, str(number)))
    assert len(told) == repeats.MAX_SUBJECTS + 4
    made.write()
    assert len(told) == 2 * repeats.MAX_SUBJECTS + 4
