"""Rates against a reference with exact arithmetic, at times that floats represent exactly."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from trouter._buckets import Bucket

WHAT = st.sampled_from(["take", "owe", "give_back", "become", "forgive"])
STEPS = st.lists(st.tuples(st.integers(0, 40), WHAT, st.integers(0, 90)), max_size=60)


@given(st.integers(1, 50), STEPS)
def test_a_bucket_equals_exact_arithmetic(rate: int, steps: list[tuple[int, str, int]]) -> None:
    bucket, tokens, now = Bucket(rate, 0.0), Fraction(rate), Fraction(0)
    for eighths, what, count in steps:
        now += Fraction(eighths, 8)
        came = Fraction(eighths, 8) * rate
        tokens = min(tokens + came - (count if what == "owe" else 0), Fraction(rate))
        if what == "take":
            taken = max(0, min(count, int(tokens)))
            assert bucket.take_tokens(count, float(now)) == taken
            tokens -= taken
        elif what == "owe":
            bucket.owe_tokens(count, float(now))
        elif what == "give_back":
            bucket.tokens(float(now))
            bucket.return_tokens(count)
            tokens = min(tokens + count, Fraction(rate))
        elif what == "become":
            rate = count + 1
            bucket.set_rate(rate, float(now))
            tokens = min(tokens, Fraction(rate))
        else:
            bucket.tokens(float(now))
            bucket.cancel_debt()
            tokens = max(tokens, Fraction(0))
        assert bucket.tokens(float(now)) == tokens
        assert bucket.is_full(float(now)) == (tokens == rate)


@given(st.integers(1, 50), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 200)), max_size=40))
def test_in_no_time_more_is_taken_than_that_time_and_one_second_allow(rate: int, asked: list[tuple[int, int]]) -> None:
    bucket, now = Bucket(rate, 0.0), 0.0
    taken: list[tuple[float, int]] = []
    for eighths, count in asked:
        now += eighths / 8
        taken.append((now, bucket.take_tokens(count, now)))
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            span = taken[last][0] - taken[first][0]
            assert sum(count for _, count in taken[first : last + 1]) <= rate * (span + 1)


def test_tokens_of_the_meantime_pay_the_debt_before_the_bucket_overflows() -> None:
    bucket = Bucket(10, 0.0)
    bucket.owe_tokens(30, 2.0)
    assert bucket.tokens(2.0) == 0
    bucket.owe_tokens(30, 3.0)
    assert bucket.tokens(3.0) == -20
    assert bucket.take_tokens(1, 3.0) == 0


def test_time_that_goes_back_changes_nothing() -> None:
    bucket = Bucket(10, 5.0)
    assert bucket.take_tokens(10, 5.0) == 10
    assert bucket.take_tokens(1, 4.0) == 0
    assert bucket.take_tokens(5, 5.5) == 5


def test_a_bucket_with_a_burst_of_its_own_fills_up_to_it_and_says_when_the_next_token_comes() -> None:
    bucket = Bucket(2, 0.0, burst=5)
    assert bucket.take_tokens(9, 0.0) == 5
    assert bucket.wait_s(0.0) == 0.5
    assert bucket.wait_s(0.5) == 0.0
    assert bucket.tokens(60.0) == 5
    bucket.set_rate(2, 60.0, burst=3)
    assert bucket.tokens(60.0) == 3
