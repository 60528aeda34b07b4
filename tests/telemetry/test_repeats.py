"""Repeated events are reported one by one a few times a second, and then summed."""

from __future__ import annotations

from collections.abc import Callable

from trouter.telemetry import recorder
from trouter.telemetry.recorder import Repeats

Reported = list[tuple[str, int]]


def reporter(reported: Reported, what: str) -> Callable[[int], None]:
    return lambda count: reported.append((what, count))


def test_the_first_events_are_reported_one_by_one_and_later_ones_together() -> None:
    made, reported = Repeats(), Reported()
    for number in range(6):
        made.happened("x", 2, reporter(reported, str(number)))
    made.happened("y", 2, reporter(reported, "y"))
    assert reported == [("0", 1), ("1", 1), ("y", 1)]
    made.write()
    assert reported[3:] == [("2", 4)]
    made.write()
    assert len(reported) == 4
    made.happened("x", 2, reporter(reported, "again"))
    assert reported[4:] == [("again", 1)]


def test_no_more_subjects_are_counted_than_there_is_room_for() -> None:
    made, reported = Repeats(), Reported()
    for number in range(recorder.MAX_SUBJECTS + 2):
        for _ in range(2):
            made.happened(number, 1, reporter(reported, str(number)))
    assert len(reported) == recorder.MAX_SUBJECTS + 4
    made.write()
    assert len(reported) == 2 * recorder.MAX_SUBJECTS + 4
