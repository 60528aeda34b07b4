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


FLOOD = 100


def flood(made: Repeats, reported: Reported, connections: int, singly: int = 16) -> None:
    """Let connections of one user repeat an event, turn by turn."""
    for _ in range(FLOOD):
        for number in range(connections):
            made.happened_to_user("user", number, singly, reporter(reported, str(number)))


def test_the_events_of_a_user_are_bounded_over_all_connections() -> None:
    made, reported = Repeats(), Reported()
    for second in range(3):
        flood(made, reported, 200)
        assert len(reported) <= 2 * recorder.OF_USER
        made.write()
        assert len(reported) <= 3 * recorder.OF_USER + 2, second
        reported.clear()


def test_no_event_of_a_user_is_lost() -> None:
    made, reported = Repeats(), Reported()
    flood(made, reported, 200)
    made.write_all()
    assert sum(count for _, count in reported) == FLOOD * 200
    made.write()
    assert sum(count for _, count in reported) == FLOOD * 200


def test_the_event_of_another_connection_is_told_beside_those_that_repeat_theirs() -> None:
    made, reported = Repeats(), Reported()
    for _ in range(3):
        flood(made, reported, recorder.OF_USER - 1)
        reported.clear()
        made.happened_to_user("user", "quiet", 16, reporter(reported, "quiet"))
        assert reported == [("quiet", 1)]
        made.write()


def test_one_connection_has_its_own_allowance_and_other_users_have_theirs() -> None:
    made, reported = Repeats(), Reported()
    flood(made, reported, 1)
    assert len(reported) == 16
    flood(made, reported, 200)
    reported.clear()
    made.happened_to_user("other", 1000, 16, reporter(reported, "other"))
    assert reported == [("other", 1)]
