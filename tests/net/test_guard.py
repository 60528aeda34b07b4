"""Who guesses passwords is slowed down, and nobody else."""

from __future__ import annotations

import pytest

from trouter.net.guard import FREE_FAILURES, LONGEST_WAIT_S, MEMORY_S, LoginGuard

HOST = "192.0.2.1"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(clock: Clock) -> LoginGuard:
    return LoginGuard(clock)


def fail(guard: LoginGuard, times: int, host: str = HOST) -> None:
    for _ in range(times):
        guard.failed(host)


def test_a_few_failures_cost_nothing(guard: LoginGuard) -> None:
    fail(guard, FREE_FAILURES - 1)
    assert guard.wait_s(HOST) == 0.0


def test_each_further_failure_doubles_the_wait_up_to_the_longest(guard: LoginGuard, clock: Clock) -> None:
    fail(guard, FREE_FAILURES)
    waits = []
    for _ in range(8):
        wait_s = guard.wait_s(HOST)
        assert wait_s is not None
        waits.append(wait_s)
        clock.now += wait_s
        guard.failed(HOST)
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_attempts_at_the_same_time_have_their_turns_one_after_another(guard: LoginGuard) -> None:
    fail(guard, FREE_FAILURES + 3)
    assert [guard.wait_s(HOST) for _ in range(5)] == [8.0, 16.0, 24.0, None, None]


def test_somebody_else_is_not_slowed_down(guard: LoginGuard) -> None:
    fail(guard, 50)
    assert guard.wait_s("192.0.2.2") == 0.0


def test_a_minute_without_failure_is_forgiven(guard: LoginGuard, clock: Clock) -> None:
    fail(guard, 50)
    assert guard.wait_s(HOST) == LONGEST_WAIT_S
    clock.now += LONGEST_WAIT_S + MEMORY_S
    assert guard.wait_s(HOST) is not None
    clock.now += 2 * LONGEST_WAIT_S + MEMORY_S + 1
    assert guard.wait_s(HOST) == 0.0
    assert len(guard) == 0


def test_a_network_of_64_bits_is_one_place(guard: LoginGuard) -> None:
    for number in range(FREE_FAILURES):
        guard.failed(f"2001:db8::{number}%eth0")
    assert guard.wait_s("2001:db8::ffff") == 1.0
    assert guard.wait_s("2001:db8:0:1::1") == 0.0
    fail(guard, FREE_FAILURES, f"::ffff:{HOST}")
    assert guard.wait_s(HOST) == 1.0


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "", "somewhere"])
def test_this_machine_is_exempt(guard: LoginGuard, host: str) -> None:
    fail(guard, 50, host)
    assert guard.wait_s(host) == 0.0
    assert len(guard) == 0


def test_so_many_places_are_remembered_and_no_more(clock: Clock) -> None:
    guard = LoginGuard(clock, max_places=10)
    fail(guard, FREE_FAILURES)
    for number in range(9):
        guard.failed(f"198.51.100.{number}")
    assert guard.wait_s(HOST) == 1.0
    guard.failed("198.51.100.99")
    assert len(guard) == 10
    assert guard.wait_s(HOST) == 0.0
