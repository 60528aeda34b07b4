"""The counts that workers keep together in shared memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from trouter.net import tallies
from trouter.net.tallies import NO_ROOM, SharedMemory, Tallies

WORKERS = 3


@pytest.fixture
def shared() -> Iterator[SharedMemory]:
    made = SharedMemory(WORKERS)
    yield made
    made.close()


@pytest.fixture
def start(shared: SharedMemory) -> Iterator[Callable[[int], Tallies]]:
    """Return a function that returns the counts as a worker of this number sees them."""
    with ExitStack() as stack:

        def start(place: int) -> Tallies:
            made = Tallies(os.dup(shared.descriptor), place, WORKERS)
            stack.callback(made.close)
            return made

        yield start


def test_the_counts_of_all_workers_are_summed(start: Callable[[int], Tallies]) -> None:
    first, second, third = (start(place) for place in (1, 2, 3))
    assert [each.raise_count("user", "v", "alice") for each in (first, second, first, third)] == [1, 2, 3, 4]
    assert first.count_others("user", "v", "alice") == 2
    second.lower_count("user", "v", "alice")
    assert third.raise_count("user", "v", "alice") == 4
    assert third.count_others("user", "v", "bob") == 0


def test_texts_that_join_alike_are_different_keys(start: Callable[[int], Tallies]) -> None:
    counts = start(1)
    assert counts.raise_count("user", "a", "b', 'c") == 1
    assert counts.raise_count("user", "a", "b", "c") == 1
    assert counts.raise_count("user", "a\0b", "c") == 1
    assert counts.raise_count("user", "\udcff", "") == 1


def test_what_was_never_counted_is_not_lowered(start: Callable[[int], Tallies]) -> None:
    counts = start(1)
    counts.lower_count("a")
    counts.raise_count("a")
    for _ in range(2):
        counts.lower_count("a")
    assert counts.raise_count("a") == 1


def test_the_part_of_a_worker_that_ended_is_cleared_and_the_others_stay(
    shared: SharedMemory, start: Callable[[int], Tallies]
) -> None:
    first, second = start(1), start(2)
    for each in (first, second, second):
        each.raise_count("a")
    shared.clear_part(2)
    assert first.count_others("a") == 0
    assert start(2).raise_count("a") == 2


@pytest.mark.attack
def test_a_full_bucket_has_no_room_until_one_of_its_keys_is_not_counted_any_more(
    start: Callable[[int], Tallies], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tallies, "BUCKETS", 1)
    counts = start(1)
    for number in range(tallies.KEYS):
        assert counts.raise_count(str(number)) == 1
    assert counts.raise_count("more") == counts.raise_count("yet more") == NO_ROOM
    assert caplog.text.count("table of counts is full") == 1
    counts.lower_count("more")
    assert counts.raise_count("7") == 2
    for _ in range(2):
        counts.lower_count("7")
    assert counts.raise_count("more") == 1


def test_many_keys_find_room_and_leave_none_taken(start: Callable[[int], Tallies]) -> None:
    counts, other = start(1), start(2)
    for round_number in range(3):
        keys = [f"{round_number} {number}" for number in range(30_000)]
        assert all(counts.raise_count(key) == 1 for key in keys)
        assert all(other.count_others(key) == 1 for key in keys[::100])
        for key in keys:
            counts.lower_count(key)
