"""A rate that holds for all workers together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter._buckets import Bucket
from trouter.net.rates import NEARLY_FULL, SharedBucket
from trouter.net.tallies import SharedMemory, Tallies

WORKERS = 3
RATE = 5
#: A machine that has run for some months.
UPTIME_S = 2.0**23


class Clock:
    """A clock that all workers have; each look at it is a little later."""

    def __init__(self) -> None:
        self.now_s = UPTIME_S

    def __call__(self) -> float:
        self.now_s += 1e-7
        return self.now_s


class Machine:
    """The workers of one router, and the memory that they share."""

    def __init__(self, stack: ExitStack) -> None:
        self.clock = Clock()
        self.shared = SharedMemory(WORKERS)
        stack.callback(self.shared.close)
        self._tallies = [
            Tallies(os.dup(self.shared.descriptor), place, WORKERS, self.clock) for place in range(1, WORKERS + 1)
        ]
        for each in self._tallies:
            stack.callback(each.close)

    def bucket(self, place: int, rate: int = RATE, burst: int | None = None) -> SharedBucket:
        """Return the bucket as a worker sees it that comes to it now."""
        return SharedBucket(self._tallies[place - 1], ("rate",), rate, self.clock(), burst)


@pytest.fixture
def machine() -> Iterator[Machine]:
    with ExitStack() as stack:
        yield Machine(stack)


def take(machine: Machine, *buckets: SharedBucket) -> int:
    """Take one token each, one after the other; return how many there were."""
    return sum(bucket.take_tokens(1, machine.clock()) for bucket in buckets)


def test_workers_take_from_one_bucket(machine: Machine) -> None:
    one, other = machine.bucket(1), machine.bucket(2)
    assert take(machine, *[one, other] * RATE) == RATE
    machine.clock.now_s += 0.5
    assert take(machine, *[other, one] * RATE) == RATE // 2


def test_a_worker_that_comes_later_finds_what_was_taken(machine: Machine) -> None:
    assert take(machine, *[machine.bucket(1)] * RATE) == RATE
    machine.clock.now_s += 1 / RATE
    late = machine.bucket(2)
    assert take(machine, *[late] * RATE) == 1
    machine.clock.now_s += 100
    assert take(machine, *[machine.bucket(3)] * 2 * RATE) == RATE


def test_what_one_worker_returns_another_may_take(machine: Machine) -> None:
    one, other = machine.bucket(1), machine.bucket(2)
    assert one.take_tokens(RATE, machine.clock()) == RATE
    one.return_tokens(2)
    assert other.take_tokens(RATE, machine.clock()) == 2
    one.return_tokens(100)
    assert other.take_tokens(100, machine.clock()) == RATE


def test_a_debt_is_of_all_workers_and_one_of_them_may_cancel_it(machine: Machine) -> None:
    one, other = machine.bucket(1), machine.bucket(2)
    one.owe_tokens(3 * RATE, machine.clock())
    assert other.tokens(machine.clock()) == pytest.approx(-2 * RATE, abs=NEARLY_FULL)
    assert other.wait_s(machine.clock()) == pytest.approx(2 + 1 / RATE, abs=NEARLY_FULL)
    other.cancel_debt()
    assert one.tokens(machine.clock()) == pytest.approx(0, abs=NEARLY_FULL)


def test_what_has_been_filled_in_meanwhile_is_set_against_what_is_owed(machine: Machine) -> None:
    one, model = machine.bucket(1), Bucket(RATE, 0.0)
    machine.clock.now_s += 1
    one.owe_tokens(1.5 * RATE, machine.clock())
    model.owe_tokens(1.5 * RATE, 1.0)
    assert one.tokens(machine.clock()) == pytest.approx(model.tokens(1.0), abs=NEARLY_FULL)
    assert machine.bucket(2).tokens(machine.clock()) == pytest.approx(model.tokens(1.0), abs=NEARLY_FULL)


def test_what_is_taken_at_the_same_moment_is_at_most_a_burst_of_each_worker_and_is_paid_back(
    machine: Machine,
) -> None:
    buckets = [machine.bucket(place) for place in range(1, WORKERS + 1)]
    at_s = machine.clock()
    assert [bucket.tokens(at_s) for bucket in buckets] == [RATE] * WORKERS  # each has looked, and none has taken yet
    assert sum(bucket.take_tokens(2 * RATE, at_s) for bucket in buckets) == WORKERS * RATE
    machine.clock.now_s += WORKERS - 1
    assert take(machine, *buckets) == 0
    machine.clock.now_s += 1
    assert take(machine, *buckets * RATE) == RATE


def test_what_a_worker_had_taken_is_given_back_when_it_has_ended(machine: Machine) -> None:
    one, other = machine.bucket(1), machine.bucket(2)
    assert take(machine, *[one] * 2, *[other] * RATE) == RATE
    machine.shared.clear_part(2)
    assert take(machine, *[one] * 3 * RATE) == RATE - 2  # what the other one had taken
    assert take(machine, *[machine.bucket(2)] * 3 * RATE) == 0


def test_another_rate_keeps_what_is_missing(machine: Machine) -> None:
    one, other = machine.bucket(1), machine.bucket(2)
    assert take(machine, *[one, other] * 2) == 4
    for bucket in (one, other):
        bucket.set_rate(3, machine.clock())
    assert take(machine, *[one, other] * RATE) == 1
    machine.clock.now_s += 1
    assert take(machine, *[one, other] * RATE) == 3


def test_a_worker_that_gives_a_full_bucket_up_leaves_it_full(machine: Machine) -> None:
    one, other = machine.bucket(1), machine.bucket(2)
    assert take(machine, *[one, other] * 2) == 4
    machine.clock.now_s += 1
    assert one.is_full(machine.clock())
    one.give_up()
    assert take(machine, *[other] * 2 * RATE) == RATE


@given(
    st.lists(
        st.tuples(
            st.integers(1, WORKERS),
            st.sampled_from(["take", "owe", "return", "cancel", "look"]),
            st.integers(0, 12),
            st.sampled_from([0.0, 0.01, 0.3, 1.0, 7.5]),
        ),
        max_size=60,
    ),
    st.sampled_from([None, 1, 12]),
)
def test_the_bucket_of_all_workers_is_as_one_of_one_process(
    acts: list[tuple[int, str, int, float]], burst: int | None
) -> None:
    with ExitStack() as stack:
        machine = Machine(stack)
        model = Bucket(RATE, machine.clock(), burst)
        buckets: dict[int, SharedBucket] = {}
        for place, act, count, later_s in acts:
            machine.clock.now_s += later_s
            bucket = buckets.get(place)
            if bucket is None:
                bucket = buckets[place] = machine.bucket(place, burst=burst)
            now_s = machine.clock()
            bucket.tokens(now_s)
            model.tokens(now_s)
            if act == "take":
                count = min(count, int(model.tokens(now_s) + 2 * NEARLY_FULL))  # they may differ in the last digit
                model.owe_tokens(bucket.take_tokens(count, now_s), now_s)
            elif act == "return":
                model.return_tokens(count)
                bucket.return_tokens(count)
            elif act == "owe":
                model.owe_tokens(count, now_s)
                bucket.owe_tokens(count, now_s)
            elif act == "cancel":
                model.cancel_debt()
                bucket.cancel_debt()
            after_s = machine.clock()
            assert bucket.tokens(after_s) == pytest.approx(model.tokens(after_s), abs=len(acts) * 2 * NEARLY_FULL)


def test_in_the_long_run_many_workers_take_no_more_than_the_rate(machine: Machine) -> None:
    buckets = [machine.bucket(place) for place in range(1, WORKERS + 1)]
    taken = 0
    for number in range(10_000):
        machine.clock.now_s += 0.01
        taken += buckets[number * 7 % WORKERS].take_tokens(2, machine.clock())
    assert RATE * 100 <= taken <= RATE * 101 + 1
