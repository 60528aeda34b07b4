"""A client that guesses passwords is delayed and locked out, and no other client (security.md 8.1)."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.clock import Clock
from trouter.admission.lockout import MAX_USER, AttemptResult, Key, Lockout, LockoutRules, folded, pair_of

HOST, OTHER = "192.0.2.1", "192.0.2.2"
RULES = LockoutRules()


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def lockout(clock: Clock) -> Lockout:
    return Lockout(clock)


def fail(lockout: Lockout, times: int, user: str = "alice", host: str = HOST) -> list[AttemptResult]:
    return [lockout.judge_attempt(host, user, right=False) for _ in range(times)]


def guess(lockout: Lockout, clock: Clock, user: str = "alice", host: str = HOST) -> tuple[float, AttemptResult]:
    """Fail one login; return the delay before it, and the verdict with the delay before its outcome."""
    before_s = lockout.wait_s(host)
    assert before_s is not None
    clock.now_s += before_s
    verdict = lockout.judge_attempt(host, user, right=False, waited_s=before_s)
    assert verdict.wait_s is not None
    clock.now_s += verdict.wait_s
    return before_s, verdict


# Delays


def test_a_few_failures_cost_nothing(lockout: Lockout) -> None:
    assert fail(lockout, 4) == [AttemptResult()] * 4
    assert lockout.wait_s(HOST) == 0.0
    assert lockout.judge_attempt(HOST, "alice", right=True) == AttemptResult()


def test_each_further_failure_of_a_host_doubles_the_wait_up_to_the_longest(lockout: Lockout, clock: Clock) -> None:
    fail(lockout, 5)
    waits = []
    for number in range(8):
        before_s, _ = guess(lockout, clock, f"user{number}")
        waits.append(before_s)
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_a_user_is_waited_for_where_hosts_are_not_counted(lockout: Lockout, clock: Clock) -> None:
    fail(lockout, 5, host="127.0.0.1")
    waits = []
    for _ in range(7):
        before_s, verdict = guess(lockout, clock, host="127.0.0.1")
        assert before_s == 0.0
        waits.append(verdict.wait_s)
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert lockout.judge_attempt("127.0.0.1", "bob", right=True) == AttemptResult()


def test_a_right_password_waits_as_a_wrong_one_does(lockout: Lockout) -> None:
    fail(lockout, 5)
    assert lockout.judge_attempt(HOST, "alice", right=True).wait_s == 1.0


def test_a_wait_served_for_the_host_is_not_served_again(lockout: Lockout, clock: Clock) -> None:
    fail(lockout, 5)
    waits = [guess(lockout, clock) for _ in range(5)]
    assert [(before_s, verdict.wait_s) for before_s, verdict in waits] == [(each, 0.0) for each in (1, 2, 4, 8, 16)]


def test_attempts_at_the_same_time_have_their_turns_one_after_another(lockout: Lockout) -> None:
    for number in range(8):
        fail(lockout, 1, f"user{number}")
    assert [lockout.wait_s(HOST) for _ in range(5)] == [8.0, 16.0, 24.0, None, None]
    assert [verdict.wait_s for verdict in fail(lockout, 12, host="127.0.0.1")][4:] == [0, 1, 3, 7, 15, None, None, None]


def test_an_attempt_that_has_no_turn_is_not_counted(lockout: Lockout) -> None:
    fail(lockout, 8)
    while lockout.judge_attempt(HOST, "alice", right=False).wait_s is not None:
        pass
    counted = lockout.state_of(Key(HOST, "alice"))
    fail(lockout, 100)
    assert lockout.state_of(Key(HOST, "alice")) == counted


def test_failures_far_apart_are_no_guessing(lockout: Lockout, clock: Clock) -> None:
    for _ in range(19):
        assert lockout.judge_attempt(HOST, "alice", right=False) == AttemptResult()
        assert lockout.wait_s(HOST) == 0.0
        clock.now_s += RULES.delay_window_s / 4 + 0.1


def test_old_failures_do_not_hide_recent_ones(lockout: Lockout, clock: Clock) -> None:
    fail(lockout, 1)
    clock.now_s += RULES.delay_window_s + 1
    fail(lockout, 5)
    assert lockout.wait_s(HOST) == 1.0


def test_a_minute_without_failure_is_forgiven(lockout: Lockout, clock: Clock) -> None:
    for number in range(9):
        fail(lockout, 1, f"user{number}")
    assert lockout.wait_s(HOST) == 16.0
    clock.now_s += RULES.delay_window_s
    assert lockout.wait_s(HOST) == 16.0
    clock.now_s += 1
    assert lockout.wait_s(HOST) == 0.0
    assert lockout.judge_attempt(HOST, "alice", right=True) == AttemptResult()


# Locks


@pytest.mark.attack
@pytest.mark.parametrize("every_s", [1, 5, 20, 45, 80])
def test_right_passwords_do_not_prolong_the_delay_of_their_host(lockout: Lockout, clock: Clock, every_s: float) -> None:
    for _ in range(40):
        if (wait_s := lockout.wait_s(HOST)) is not None:
            lockout.judge_attempt(HOST, "mallory", right=False, tried="mallory", waited_s=wait_s)
        clock.now_s += 1
    ended_s = clock.now_s
    while clock.now_s - ended_s <= 60:
        if (wait_s := lockout.wait_s(HOST)) is not None:
            lockout.judge_attempt(HOST, "alice", right=True, tried="alice", waited_s=wait_s)
        clock.now_s += every_s
    assert lockout.wait_s(HOST) == 0.0


def test_thirty_wrong_passwords(lockout: Lockout, clock: Clock) -> None:
    """Check the test that security.md 8.1 requires."""
    began: list[int] = []
    total_s = 0.0
    for number in range(1, 31):
        before_s, verdict = guess(lockout, clock)
        total_s += before_s + (verdict.wait_s or 0.0)
        if verdict.began:
            began.append(number)
        assert verdict.locked is (number > 20)
    assert began == [20]
    assert total_s > 600
    assert lockout.judge_attempt(HOST, "alice", right=True).locked  # it is refused, and counts as a failure
    assert lockout.judge_attempt(OTHER, "alice", right=True) == AttemptResult()
    assert lockout.judge_attempt(OTHER, "bob", right=True) == AttemptResult()
    assert not lockout.judge_attempt(HOST, "bob", right=True).locked


def test_the_lock_ends_at_its_time_although_logins_are_tried(lockout: Lockout, clock: Clock) -> None:
    lockout.rules = replace(RULES, delay_after=1000)
    fail(lockout, 20)
    clock.now_s += RULES.lock_s - 1
    assert [verdict.locked for verdict in fail(lockout, 5)] == [True] * 5
    assert lockout.judge_attempt(HOST, "alice", right=True).locked
    clock.now_s += 1
    assert not lockout.judge_attempt(HOST, "alice", right=True).locked
    assert lockout.state_of(Key(HOST, "alice")) is None


def test_twenty_failures_over_a_longer_time_are_no_lock(lockout: Lockout, clock: Clock) -> None:
    for _ in range(60):
        assert not lockout.judge_attempt(HOST, "alice", right=False).began
        clock.now_s += RULES.lock_window_s / 19 + 0.1


def test_an_unknown_user_is_locked_as_well(lockout: Lockout) -> None:
    lockout.rules = replace(RULES, delay_after=1000)
    assert [verdict.began for verdict in fail(lockout, 21, "nobody at all")] == [False] * 19 + [True, False]


def test_a_success_forgives_the_user_and_not_the_host(lockout: Lockout) -> None:
    fail(lockout, 4)
    lockout.judge_attempt(HOST, "alice", right=True)
    assert lockout.state_of(Key(HOST, "alice")) is None
    fail(lockout, 1, "bob")
    assert lockout.wait_s(HOST) == 1.0


def test_without_a_name_the_host_alone_is_counted(lockout: Lockout) -> None:
    fail(lockout, 5, "")
    assert lockout.keys() == [Key(HOST)]
    assert lockout.wait_s(HOST) == 1.0


# Users and hosts that are counted


def test_a_network_of_64_bits_is_one_place(lockout: Lockout) -> None:
    for number in range(5):
        fail(lockout, 1, host=f"2001:db8::{number}%eth0")
    assert lockout.wait_s("2001:db8::ffff") == 1.0
    assert lockout.wait_s("2001:db8:0:1::1") == 0.0
    fail(lockout, 5, host=f"::ffff:{HOST}")
    assert lockout.wait_s(HOST) == 1.0


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
def test_on_loopback_only_pairs_are_counted_unless_shared_hosts_are_configured(lockout: Lockout, host: str) -> None:
    fail(lockout, 5, host=host)
    assert lockout.wait_s(host) == 0.0
    lockout.rules = replace(RULES, shared=())
    fail(lockout, 5, "", host)
    assert lockout.wait_s(host) == 1.0


@pytest.mark.parametrize("network", ["192.0.2.0/24", "192.0.2.1", "::/0", "2001:db8::7"])
def test_failures_of_an_exempt_host_are_not_counted(lockout: Lockout, network: str) -> None:
    lockout.rules = replace(RULES, exempt=(ipaddress.ip_network(network),))
    host = HOST if "192" in network else "2001:db8::7"
    assert fail(lockout, 50, host=host) == [AttemptResult()] * 50
    assert lockout.wait_s(host) == 0.0
    assert len(lockout) == 0


def test_an_alarm_is_given_once_and_no_login_is_held_up(lockout: Lockout) -> None:
    lockout.rules = replace(RULES, mode="alarm")
    verdicts = fail(lockout, 30)
    assert [verdict.began for verdict in verdicts] == [False] * 19 + [True] + [False] * 10
    assert {(verdict.locked, verdict.wait_s) for verdict in verdicts} == {(False, 0.0)}
    assert lockout.wait_s(HOST) == 0.0
    assert lockout.judge_attempt(HOST, "alice", right=True) == AttemptResult()


def test_the_lockout_can_be_switched_off(lockout: Lockout) -> None:
    lockout.rules = replace(RULES, mode="off")
    assert fail(lockout, 50) == [AttemptResult()] * 50
    assert len(lockout) == 0


# Memory


def test_so_many_are_remembered_and_no_more_the_last_touched_longest(clock: Clock) -> None:
    lockout = Lockout(clock, max_entries=10)
    fail(lockout, 5)
    for number in range(4):
        fail(lockout, 1, host=f"198.51.100.{number}")
    assert len(lockout) == 10
    fail(lockout, 1)
    fail(lockout, 1, host="198.51.100.99")
    assert len(lockout) == 10
    assert lockout.state_of(Key("198.51.100.0")) is None
    assert lockout.state_of(Key(HOST)) is not None


def test_an_attempt_in_a_full_table_does_not_end_the_lock_of_its_user(clock: Clock) -> None:
    """The place of a locked pair was dropped for another user, and returns with the next attempt."""
    lockout = Lockout(clock, LockoutRules(lock_after=2), max_entries=2)
    assert fail(lockout, 2)[-1].began
    fail(lockout, 1, "bob", "127.0.0.1")
    assert [verdict.locked for verdict in fail(lockout, 2)] == [True, True]


def test_a_million_names_take_bounded_room(clock: Clock) -> None:
    lockout = Lockout(clock, max_entries=1000)
    for number in range(10_000):
        lockout.judge_attempt("127.0.0.1", f"user{number}", right=False)
    assert len(lockout) == 1000


def test_endless_failures_take_no_more_than_their_fixed_memory(lockout: Lockout) -> None:
    lockout.rules = replace(RULES, mode="alarm")
    fail(lockout, 1000)
    assert {len(entry.times) for entry in lockout._entries.values()} == {RULES.lock_after}


def test_an_entry_can_be_looked_at_and_forgiven(lockout: Lockout) -> None:
    lockout.rules = replace(RULES, lock_after=6)
    fail(lockout, 6)
    assert lockout.keys() == [Key(HOST), Key(HOST, "alice")]
    assert lockout.state_of(Key(HOST, "alice")) == (6, 2.0, 900.0)
    assert lockout.state_of(Key(HOST)) == (6, 2.0, 0.0)
    assert lockout.remove_entry(Key(HOST, "alice"))
    assert not lockout.remove_entry(Key(HOST, "alice"))
    assert lockout.state_of(Key(HOST, "alice")) is None
    assert lockout.judge_attempt(HOST, "alice", right=True) == AttemptResult()


class Pair:
    """The lockouts of two workers that tell each other."""

    def __init__(self, clock: Clock) -> None:
        self.told: list[Mapping[str, object]] = []
        self.second = Lockout(clock)
        self.first = Lockout(clock, notify=self._notify)

    def _notify(self, news: Mapping[str, object]) -> None:
        self.told.append(news)
        self.second.receive_news(json.loads(json.dumps(news)))


def test_failures_at_another_worker_count_and_are_not_told_again(clock: Clock) -> None:
    pair = Pair(clock)
    for _ in range(RULES.lock_after):
        guess(pair.first, clock)
    assert len(pair.told) == RULES.lock_after
    assert pair.second.judge_attempt(HOST, "alice", right=True).locked
    assert not pair.second.judge_attempt(HOST, "bob", right=True).locked
    assert len(pair.told) == RULES.lock_after


def test_failures_without_a_user_delay_the_place_at_another_worker(clock: Clock) -> None:
    pair = Pair(clock)
    fail(pair.first, RULES.delay_after, user="")
    assert pair.second.wait_s(HOST)
    assert not pair.second.wait_s(OTHER)


def test_what_is_cleared_at_one_worker_is_cleared_at_the_others(clock: Clock) -> None:
    pair = Pair(clock)
    fail(pair.first, 1)
    assert pair.first.judge_attempt(HOST, "alice", right=True) == AttemptResult()
    assert pair.second.keys() == [Key(HOST)]
    assert pair.first.remove_entry(Key(HOST))
    assert pair.second.keys() == []


def test_a_long_name_is_cut_before_it_is_kept_and_before_other_workers_get_it(clock: Clock) -> None:
    pair = Pair(clock)
    fail(pair.first, 1, user="a" * 70_000)
    cut = Key(HOST, "a" * MAX_USER)
    assert pair.first.keys() == pair.second.keys() == [Key(HOST), cut]
    assert pair.first.judge_attempt(HOST, "a" * 70_000, right=True) == AttemptResult()
    assert pair.second.keys() == [Key(HOST)]


# Names


SPELLINGS = ["alice", "ALICE", " alice", "alice\n", "al\u00adice", "\uff41lice", "\u200balice ", "alice"]


def test_a_user_has_one_count_for_all_spellings_that_a_service_may_take_for_it(lockout: Lockout) -> None:
    for spelling in SPELLINGS:
        fail(lockout, 1, user=spelling, host="127.0.0.1")
    assert lockout.keys() == [Key("127.0.0.1", "alice")]
    state = lockout.state_of(Key("127.0.0.1", "alice"))
    assert state is not None
    assert state[0] == len(SPELLINGS)
    assert lockout.judge_attempt("127.0.0.1", "Alice", right=True, tried="ALICE").wait_s == 15.0
    assert lockout.keys() == []


@pytest.mark.parametrize("name", ["\u0130", "\ufdfa" * 300, "\ud800", "\u1e9e", "\u0345", "a" * 300, ""])
def test_a_spelling_is_stable_and_bounded(name: str) -> None:
    assert len(folded(name)) <= MAX_USER
    assert folded(folded(name)) == folded(name)


def test_names_that_no_service_takes_for_one_another_count_apart() -> None:
    names = ["alice", "alice@bank", "bank\\alice", "al.ice", "al ice", "ali", ""]
    assert len({pair_of(HOST, name) for name in names}) == len(names)


def test_the_name_that_was_tried_is_locked_whatever_the_plugin_calls_its_user(lockout: Lockout) -> None:
    lockout.rules = replace(RULES, delay_after=1000)
    fail(lockout, 20, user="al")
    assert lockout.judge_attempt(HOST, "alice@bank", right=True, tried="al").locked
    assert not lockout.judge_attempt(OTHER, "alice@bank", right=True, tried="al").locked


def test_a_success_clears_the_user_and_no_other_name_that_was_tried(lockout: Lockout) -> None:
    fail(lockout, 3, user="alice")
    lockout.judge_attempt(HOST, "mallory", right=True, tried="alice")
    assert Key(HOST, "alice") in lockout.keys()  # noqa: SIM118 - it is no mapping


def test_the_plugin_knows_the_name_better_than_the_messages(lockout: Lockout) -> None:
    lockout.judge_attempt(HOST, "alice", right=False, tried="al")
    assert lockout.keys() == [Key(HOST), Key(HOST, "alice")]


# Attempts without a name


@pytest.mark.parametrize("mode", ["delay", "enforce"])
def test_attempts_without_a_name_are_delayed_where_hosts_are_not_counted_and_lock_nobody(
    lockout: Lockout, clock: Clock, mode: str
) -> None:
    lockout.rules = replace(RULES, mode=mode)
    waits = []
    for _ in range(40):
        _, verdict = guess(lockout, clock, user="", host="127.0.0.1")
        assert not verdict.locked
        assert not verdict.began
        waits.append(verdict.wait_s)
    assert waits[:10] == [0, 0, 0, 0, 0, 1, 2, 4, 8, 16]
    assert set(waits[10:]) == {30}
    assert lockout.judge_attempt("127.0.0.1", "alice", right=True) == AttemptResult()
    assert lockout.judge_attempt("127.0.0.1", "alice", right=False) == AttemptResult()
    assert lockout.count_locked() == 0


def test_workers_share_the_attempts_without_a_name(clock: Clock) -> None:
    pair = Pair(clock)
    fail(pair.first, 3, user="", host="127.0.0.1")
    assert pair.second.state_of(Key("127.0.0.1", "")) == pair.first.state_of(Key("127.0.0.1", "")) != None  # noqa: E711


# Many clients at one address


@pytest.fixture
def patient(clock: Clock) -> Lockout:
    return Lockout(clock, replace(RULES, mode="delay"))


def test_only_wrong_answers_of_the_pair_are_late(patient: Lockout) -> None:
    waits = [verdict.wait_s for verdict in fail(patient, 12)]
    assert waits == [0.0] * 5 + [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert patient.wait_s(HOST) == 0.0
    assert patient.busy_place(HOST) == ""
    assert patient.judge_attempt(HOST, "bob", right=False) == AttemptResult()
    assert patient.judge_attempt(OTHER, "alice", right=False) == AttemptResult()
    assert [patient.state_of(Key(HOST, user)) is None for user in ("alice", "bob", None)] == [False, False, True]


def test_a_right_password_is_never_late_nor_locked_out(patient: Lockout) -> None:
    verdicts = fail(patient, 30)
    assert [verdict.began for verdict in verdicts].count(True) == 1
    assert not any(verdict.locked for verdict in verdicts)
    assert patient.count_locked() == 0
    assert patient.state_of(Key(HOST, "alice")) == (30, 30.0, 0.0)
    assert patient.judge_attempt(HOST, "alice", right=True) == AttemptResult()
    assert patient.state_of(Key(HOST, "alice")) is None


def test_wrong_answers_are_late_no_longer_after_a_pause(patient: Lockout, clock: Clock) -> None:
    fail(patient, 6)
    clock.now_s += RULES.delay_window_s + 1
    assert fail(patient, 1) == [AttemptResult()]
