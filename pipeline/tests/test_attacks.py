"""The rules of attacks, at their limits; and records in any order and batches."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from pipeline.tests.attacked import attacks, denial, login, noisy_day
from pipeline.tests.generate import DAY, MINUTE, SECOND, START
from pipeline.tests.oracles.audit import GUESSES, Found
from pipeline.tests.oracles.audit import alerts as expected_alerts
from trouter.records import PolicyDecision, Record, SaslOutcomeRecord
from trouter_pipeline.attacks import Alert, Limits, Rules, Subject, judge_of
from trouter_pipeline.detector import judged_in_order, step
from trouter_pipeline.jobs.audit import Attacks
from trouter_pipeline.windows import MAX_EVIDENCE, MAX_MEMBERS, Seen

pytestmark = pytest.mark.one_twin

HOUR = 60 * MINUTE
Key = tuple[str, str | None, str | None, str | None]
Numbered = tuple[str, int, int, Record]


def numbered(records: Iterable[Record]) -> list[Numbered]:
    """Return the records of one router, in the order of their times."""
    return [("QDR.A", 1, n, record) for n, record in enumerate(sorted(records, key=lambda record: record.t))]


def rows_of(records: Iterable[Numbered]) -> Iterator[tuple[Key, tuple[Any, ...]]]:
    """Yield Spark's rows for records before they are judged: the subject, and the fields."""
    for router, boot, n, record in records:
        where = (record.t, router, boot, n)
        if isinstance(record, SaslOutcomeRecord) and (record.ok or record.reason in GUESSES):
            yield ("host", record.host, None, None), (*where, record.ok, record.user or "", 1)
            if not record.ok and record.user is not None:
                yield ("user", None, record.user, None), (*where, False, record.host, 1)
        if isinstance(record, PolicyDecision) and not record.allow:
            yield ("denied", record.host, record.user, record.vhost), (*where, False, record.addr or "", record.repeat)


def whole(rows: Iterable[tuple[Any, ...]]) -> set[Found]:
    """Return each alert in its last form."""
    last: dict[str, tuple[Any, ...]] = {}
    for row in rows:
        if row[0] not in last or (row[-1], row[7]) > (last[row[0]][-1], last[row[0]][7]):
            last[row[0]] = row
    return {Found._make((*row[1:9], row[10])) for row in last.values()}


def in_table(records: Iterable[Numbered], limits: Limits, as_of: int | None = None) -> set[Found]:
    """Judge as over a table: all records of a subject are sorted."""
    subjects: dict[Key, list[tuple[Any, ...]]] = {}
    for key, row in rows_of(records):
        subjects.setdefault(key, []).append(row)
    detector = Attacks(limits)
    return whole(each for key, rows in subjects.items() for each in judged_in_order(detector, key, sorted(rows), as_of))


def in_batches(batches: Iterable[list[Numbered]], limits: Limits, late: int, as_of: int) -> set[Found]:
    """Judge as Spark does: the state is serialised between batches, the watermark follows the latest record."""
    detector = Attacks(limits)
    kept: dict[Key, tuple[bytes, int]] = {}
    found: list[tuple[Any, ...]] = []
    watermark = latest = 0

    def take(key: Key, rows: list[tuple[Any, ...]]) -> None:
        done = step(detector, key, kept[key][0] if key in kept else None, rows, watermark)
        found.extend(done.rows)
        kept.pop(key, None)
        if done.kept is not None:
            assert done.due is not None
            kept[key] = done.kept, done.due

    for batch in [*batches, []]:
        subjects: dict[Key, list[tuple[Any, ...]]] = {}
        for key, row in rows_of(batch):
            if row[0] > watermark:
                subjects.setdefault(key, []).append(row)
        for key, rows in subjects.items():
            take(key, rows)
        latest = max([latest, *(record.t for *_, record in batch)]) if batch else as_of + late
        watermark = max(watermark, latest - late)
        for key in [key for key, (_, due) in kept.items() if due <= watermark]:
            take(key, [])
    return whole(found)


def spoken(records: Iterable[Record], limits: Limits | None = None) -> list[tuple[str, str | None, str | None]]:
    return sorted(
        ((found.rule, found.user, found.host) for found in in_table(numbered(records), limits or Limits())),
        key=str,
    )


@pytest.mark.parametrize(("count", "noticed"), [(19, False), (20, True), (21, True)])
def test_brute_force_is_so_many_failures_of_a_user_at_a_host(count: int, noticed: bool) -> None:
    found = spoken(login(START + n * SECOND, "alice", "h") for n in range(count))
    assert found == [("brute-force", "alice", "h")] * noticed


@pytest.mark.parametrize(
    ("span_us", "noticed"), [(599 * SECOND, 1), (600 * SECOND, 1), (600 * SECOND + 1, 0), (601 * SECOND, 0)]
)
def test_a_window_includes_both_ends(span_us: int, noticed: int) -> None:
    failures = [login(START + n * SECOND, "alice", "h") for n in range(19)]
    assert len(spoken([*failures, login(START + span_us, "alice", "h")])) == noticed


@pytest.mark.parametrize(("users", "noticed"), [(14, False), (15, True), (16, True)])
def test_spraying_is_so_many_users_at_a_host(users: int, noticed: bool) -> None:
    assert spoken(login(START + n * SECOND, f"u{n}", "h") for n in range(users)) == [("spray", None, "h")] * noticed


def test_a_host_that_logs_in_at_last_is_not_spraying() -> None:
    tries = [login(START + n * SECOND, f"u{n}", "h") for n in range(14)]
    assert spoken([*tries, login(START + 20 * SECOND, "u0", "h", ok=True), login(START + MINUTE, "u99", "h")]) == []


@pytest.mark.parametrize(("count", "hosts", "noticed"), [(20, 9, 0), (20, 10, 1), (19, 10, 0), (21, 11, 1)])
def test_distributed_is_so_many_failures_at_so_many_hosts(count: int, hosts: int, noticed: int) -> None:
    found = spoken(login(START + n * SECOND, "alice", f"h{n % hosts}") for n in range(count))
    assert found == [("distributed", "alice", None)] * noticed


@pytest.mark.parametrize(("count", "noticed"), [(49, False), (50, True), (51, True)])
def test_many_failures_of_a_few_users_are_the_hosts(count: int, noticed: bool) -> None:
    found = spoken(login(START + n * SECOND, f"u{n % 10}", "h") for n in range(count))
    assert [each for each in found if each[0] == "brute-force-host"] == [("brute-force-host", None, "h")] * noticed


@pytest.mark.parametrize(("count", "noticed"), [(23, False), (24, True), (25, True)])
def test_low_and_slow_is_so_many_in_half_a_day_without_a_success(count: int, noticed: bool) -> None:
    slow = [login(START + n * 25 * MINUTE, "alice", "h") for n in range(count)]
    assert spoken(slow) == [("low-and-slow", "alice", "h")] * noticed
    forgiven = [*slow[:12], login(slow[11].t + 1, "alice", "h", ok=True), *slow[12:]]
    assert spoken(forgiven) == []


def test_half_a_day_has_both_its_ends() -> None:
    apart = 12 * HOUR // 23
    exact = [login(START + n * apart, "alice", "h") for n in range(23)]
    assert len(spoken([*exact, login(START + 12 * HOUR, "alice", "h")])) == 1
    assert spoken([*exact, login(START + 12 * HOUR + 1, "alice", "h")]) == []


def test_slow_guessing_at_several_users_is_the_hosts() -> None:
    slow = [login(START + n * 25 * MINUTE, f"u{n % 7}", "h") for n in range(24)]
    assert spoken(slow) == [("low-and-slow-host", None, "h")]
    assert spoken([*slow, login(START + HOUR + 1, "bob", "h", ok=True)]) == []


@pytest.mark.parametrize(("count", "noticed"), [(9, False), (10, True), (11, True)])
def test_a_success_after_so_many_failures_is_reported_once(count: int, noticed: bool) -> None:
    failures = [login(START + n * SECOND, "alice", "h") for n in range(count)]
    successes = [login(START + MINUTE + n, "alice", "h", ok=True) for n in range(3)]
    assert spoken([*failures, *successes]) == [("success-after", "alice", "h")] * noticed
    late = [login(failures[-10 if count > 9 else 0].t + 600 * SECOND + 1, "alice", "h", ok=True)]
    assert spoken([*failures, *late]) == []


def test_four_failures_and_a_success_are_a_person() -> None:
    person = [login(START + n * SECOND, "alice", "h") for n in range(4)]
    assert spoken([*person, login(START + MINUTE, "alice", "h", ok=True)]) == []


def test_a_success_after_slow_guessing_is_reported() -> None:
    slow = [login(START + n * 25 * MINUTE, "alice", "h") for n in range(25)]
    found = spoken([*slow, login(slow[-1].t + MINUTE, "alice", "h", ok=True)])
    assert found == [("low-and-slow", "alice", "h"), ("success-after", "alice", "h")]


@pytest.mark.parametrize(("repeats", "noticed"), [([99], 0), ([100], 1), ([50, 49], 0), ([50, 50], 1), ([1] * 101, 1)])
def test_denials_count_as_often_as_they_were_repeated(repeats: list[int], noticed: int) -> None:
    denials = (denial(START + n * SECOND, "alice", "h", repeat=repeat) for n, repeat in enumerate(repeats))
    assert spoken(denials) == [("denial-burst", "alice", "h")] * noticed


def test_failures_without_a_guess_do_not_count() -> None:
    reasons = ("service", "timeout", "protocol", "expired", "unknown-mechanism")
    assert spoken(login(START + n, "alice", "h", reason=reasons[n % 5]) for n in range(200)) == []


def test_a_rule_is_mute_until_a_quiet_window_and_then_shows_the_totals() -> None:
    first = [login(START + n * 30 * SECOND, "alice", "h") for n in range(100)]
    second = [login(first[-1].t + 600 * SECOND + 1 + n * SECOND, "alice", "h") for n in range(20)]
    found = in_table(numbered([*first, *second]), Limits(), as_of=second[-1].t + 601 * SECOND)
    assert sorted((each.first_us, each.last_us, each.failures, each.ended) for each in found) == [
        (START, first[-1].t, 100, True),
        (second[0].t, second[-1].t, 20, True),
    ]
    bridged = [*first, login(first[-1].t + 600 * SECOND, "alice", "h"), *second]
    assert [each.failures for each in in_table(numbered(bridged), Limits(), as_of=START + 10 * HOUR)] == [121]


def test_an_attack_that_goes_on_is_reported_again_once_in_a_window() -> None:
    rows = [row for key, row in rows_of(numbered(login(START + n * 60 * SECOND, "alice", "h") for n in range(60)))]
    limits = Limits(brute_failures=5)
    made = list(judged_in_order(Attacks(limits), ("host", "h", None, None), [row for row in rows if row[5] == "alice"]))
    assert [(row[1], row[7]) for row in made] == [("brute-force", count) for count in (5, 15, 25, 35, 45, 55)]
    assert len({row[0] for row in made}) == 1


def test_the_same_record_twice_counts_once() -> None:
    records = numbered(login(START + n * SECOND, "alice", "h") for n in range(19))
    assert in_table([*records, *records], Limits()) == set()
    assert in_batches([records, records, records[5:]], Limits(), 60 * SECOND, START + HOUR) == set()


def test_records_of_one_moment_are_distinguished() -> None:
    records = numbered(login(START, "alice", "h") for n in range(20))
    assert len(in_table(records, Limits())) == 1


def test_memory_and_evidence_are_bounded_for_any_input() -> None:
    judge = judge_of(Rules(Limits()), Subject("host", "h"), Attacks().types(("host", "h", None, None))[1]())
    alerts: list[Alert] = []
    for n in range(5 * MAX_MEMBERS):
        alerts += judge.feed(Seen(START + n, "QDR.A", 1, n, False, f"u{n}", 1))
    assert [alert.rule for alert in alerts] == ["spray"]
    assert len(judge.state.users) <= MAX_MEMBERS
    assert len(judge.state.spray.window.members) == 15
    ended = list(judge.expire(START + HOUR))
    assert [(len(alert.evidence), alert.distinct, alert.failures) for alert in ended] == [
        (MAX_EVIDENCE, MAX_MEMBERS, 5 * MAX_MEMBERS)
    ]
    assert list(judge.expire(START + 13 * HOUR)) == []
    assert judge.due() is None


def test_too_much_that_waits_is_judged_before_its_time_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trouter_pipeline.detector.MAX_WAITING", 8)
    records = numbered(login(START + n * SECOND, "alice", "h") for n in range(40))
    random.Random(1).shuffle(records)
    found = in_batches([records], Limits(), HOUR, START + 2 * HOUR)
    assert [(each.rule, each.failures) for each in found] == [("brute-force", 40)]


SMALL = Limits(
    window_s=60, brute_failures=5, host_failures=9, distributed_failures=6, distributed_hosts=3, spray_users=4,
    success_after=3, slow_failures=7, slow_window_s=600, denials=6,
)  # fmt: skip


def noise(chance: random.Random, count: int) -> list[Record]:
    """Return records of few users at few hosts with bursts and pauses: rules are reached, or just not."""
    t = START
    records: list[Record] = []
    while len(records) < count:
        users = chance.sample(("a", "b", "c", "d", "e", None), chance.choice((1, 2, 3, 3, 6)))
        hosts = chance.sample(("h0", "h1", "h2", "h3"), chance.choice((1, 1, 4)))
        pace = chance.choice((2, 6, 20, 90)) * SECOND
        denied = chance.random() < 0.2
        for _ in range(chance.randrange(4, 20)):
            t += chance.choice((0, pace, pace, pace + 1))
            user, host = chance.choice(users), chance.choice(hosts)
            if denied:
                records.append(denial(t, user or "a", host, repeat=chance.choice((1, 1, 2, 5))))
            else:
                reason = chance.choice(("bad-credentials", "locked", "bad-credentials", "timeout"))
                records.append(login(t, user, host, ok=chance.random() < 0.04, reason=reason))
        t += chance.choice((0, 59, 60, 61, 300)) * SECOND
    return records


@pytest.mark.parametrize("seed", range(12))
def test_alerts_equal_the_oracle_in_one_table_and_in_disordered_batches(seed: int) -> None:
    chance = random.Random(seed)
    records = numbered(noise(chance, 300))
    as_of = records[-1][3].t + HOUR
    expected = expected_alerts(records, SMALL, as_of)
    assert len({each.rule for each in expected}) >= 4
    assert in_table(records, SMALL, as_of) == expected
    late = 30 * SECOND
    disordered = sorted([*records, *chance.sample(records, 40)], key=lambda each: each[3].t + chance.randrange(late))
    cuts = sorted(chance.sample(range(1, len(disordered)), 15))
    batches = [disordered[a:b] for a, b in zip([0, *cuts], [*cuts, len(disordered)], strict=True)]
    assert in_batches(batches, SMALL, late, as_of) == expected


def test_every_rule_was_reached_in_the_test_above() -> None:
    rules = set()
    for seed in range(12):
        rules |= {each.rule for each in expected_alerts(numbered(noise(random.Random(seed), 300)), SMALL)}
    assert rules == {
        "brute-force", "brute-force-host", "distributed", "spray", "low-and-slow", "low-and-slow-host", "success-after",
        "denial-burst",
    }  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [("window_s", 0), ("brute_failures", -1), ("denials", 10_001)])
def test_a_limit_that_makes_no_sense_is_named(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{name} is {value}: it must be"):
        Limits(**{name: value})


def named(found: Iterable[Found]) -> list[tuple[str, str | None, str | None]]:
    return sorted(((each.rule, each.user, each.host) for each in found), key=str)


def test_exactly_the_planted_attacks_are_reported() -> None:
    records, cases = attacks(1)
    assert named(in_table(numbered(records), Limits())) == sorted(cases, key=str)
    as_of = records[-1].t + DAY
    assert in_table(numbered(records), Limits(), as_of) == expected_alerts(numbered(records), Limits(), as_of)


@pytest.mark.parametrize("seed", range(3))
def test_an_ordinary_noisy_day_has_one_false_alarm_the_client_that_was_forgotten(seed: int) -> None:
    assert named(in_table(numbered(noisy_day(seed)), Limits())) == [("low-and-slow", "retired", "192.0.2.9")]


def test_a_day_on_which_passwords_are_rotated_has_about_twenty_and_they_are_the_services() -> None:
    days = [named(in_table(numbered(noisy_day(seed, rotation=True)), Limits())) for seed in range(4)]
    alarms = [alarm for day in days for alarm in day if alarm[1] != "retired"]
    assert {rule for rule, _, _ in alarms} == {"success-after", "brute-force"}
    assert all(user is not None and user.startswith("service-") for _, user, _ in alarms)
    assert len(alarms) / len(days) == pytest.approx(20.75)
