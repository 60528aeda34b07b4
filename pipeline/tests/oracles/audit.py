"""Find attacks the slow way: each failure is compared with all that came before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from trouter.records import PolicyDecision, PolicyLoaded, Record, SaslOutcomeRecord
from trouter_pipeline.attacks import Limits

SECOND = 1_000_000
GUESSES = {"bad-credentials", "locked", "throttled"}


class Found(NamedTuple):
    """The fields of an alert that are compared."""

    rule: str
    user: str | None
    host: str | None
    vhost: str | None
    first_us: int
    last_us: int
    failures: int
    distinct: int
    ended: bool


class Failure(NamedTuple):
    t: int
    member: str
    weight: int


class State:
    """The failures of a subject since the last episode of a rule ended, and the current episode."""

    def __init__(self, window: int, count: int, distinct: int = 1) -> None:
        self.window, self.count, self.distinct = window, count, distinct
        self.failures: list[Failure] = []
        self.episode: list[Failure] = []

    def end(self, now: int) -> list[Failure]:
        if self.episode and now - self.episode[-1].t > self.window:
            return self.close()
        return []

    def close(self) -> list[Failure]:
        episode, self.episode, self.failures = self.episode, [], []
        return episode

    def add(self, failure: Failure) -> None:
        self.failures.append(failure)
        if self.episode:
            self.episode.append(failure)
            return
        inside = [each for each in self.failures if each.t >= failure.t - self.window]
        members = list(dict.fromkeys(each.member for each in reversed(inside)))
        if sum(each.weight for each in inside) < self.count or len(members) < self.distinct:
            return
        # the episode begins with the fewest recent failures that decide
        last = inside[-self.count :]
        each_member = {each.member: index for index, each in enumerate(inside)}
        decisive = {each_member[member] for member in members[: self.distinct]} if self.distinct > 1 else set()
        first = len(inside) - len(last)
        self.episode = [each for index, each in enumerate(inside) if index >= first or index in decisive]


class Host:
    def __init__(self, limits: Limits) -> None:
        window, slow = limits.window_s * SECOND, limits.slow_window_s * SECOND
        self.window = window
        self.after = limits.success_after
        self.brute: dict[str, State] = defaultdict(lambda: State(window, limits.brute_failures))
        self.slow: dict[str, State] = defaultdict(lambda: State(slow, limits.slow_failures))
        self.since: dict[str, list[Failure]] = defaultdict(list)
        self.host = State(window, limits.host_failures)
        self.spray = State(window, 1, limits.spray_users)
        self.slow_host = State(slow, limits.slow_failures, 2)


def alerts(records: Iterable[tuple[str, int, int, Record]], limits: Limits, as_of: int | None = None) -> set[Found]:
    """Return each alert in its last form, from records with router, boot and number.

    ``as_of`` is the time of the end: an episode that is quiet then is over.
    """
    unique = {(router, boot, n): record for router, boot, n, record in records}
    ordered = sorted(unique.items(), key=lambda item: (item[1].t, *item[0]))
    found: dict[tuple[str, str | None, str | None, str | None, int], Found] = {}

    def report(
        rule: str,
        user: str | None,
        host: str | None,
        vhost: str | None,
        episode: list[Failure],
        *,
        ended: bool,
        last: int | None = None,
    ) -> None:
        if episode:
            found[rule, user, host, vhost, episode[0].t] = Found(
                rule,
                user or None,
                host,
                vhost,
                episode[0].t,
                episode[-1].t if last is None else last,
                sum(each.weight for each in episode),
                len({each.member for each in episode}),
                ended,
            )

    hosts: dict[str, Host] = defaultdict(lambda: Host(limits))
    users: dict[str, State] = defaultdict(
        lambda: State(limits.window_s * SECOND, limits.distributed_failures, limits.distributed_hosts)
    )
    denied: dict[tuple[str | None, str | None, str | None], State] = defaultdict(
        lambda: State(limits.window_s * SECOND, limits.denials)
    )

    def note(rule: str, user: str | None, host: str, at: State, failure: Failure, *, explained: bool = False) -> None:
        if explained and not at.episode:
            at.close()
            return
        at.add(failure)
        report(rule, user, host, None, at.episode, ended=False)

    def end_all(now: int) -> None:
        for host, at in hosts.items():
            for rule, state in (
                ("brute-force-host", at.host),
                ("spray", at.spray),
                ("low-and-slow-host", at.slow_host),
            ):
                report(rule, None, host, None, state.end(now), ended=True)
            for rule, each in (("brute-force", at.brute), ("low-and-slow", at.slow)):
                for user, state in each.items():
                    report(rule, user, host, None, state.end(now), ended=True)
        for user, state in users.items():
            report("distributed", user, None, None, state.end(now), ended=True)
        for (host_, user_, vhost), state in denied.items():
            report("denial-burst", user_, host_, vhost, state.end(now), ended=True)

    for _, record in ordered:
        end_all(record.t)
        if isinstance(record, PolicyDecision) and not record.allow:
            key = (record.host, record.user, record.vhost)
            denied[key].add(Failure(record.t, record.addr or "", record.repeat))
            report("denial-burst", record.user, record.host, record.vhost, denied[key].episode, ended=False)
        if not isinstance(record, SaslOutcomeRecord) or record.host is None:
            continue
        at, user, host = hosts[record.host], record.user or "", record.host
        if record.ok:
            at.spray.failures = [each for each in at.spray.failures if each.member != user]
            report("low-and-slow-host", None, host, None, at.slow_host.close(), ended=True)
            before = at.slow[user].close()
            recent = [each for each in at.since[user] if each.t >= record.t - at.window]
            if before or len(recent) >= at.after:
                report("success-after", user, host, None, before or recent[-at.after :], ended=True, last=record.t)
            report("low-and-slow", user, host, None, before, ended=True)
            at.since[user] = []
        elif record.reason in GUESSES:
            failure = Failure(record.t, user, 1)
            at.since[user].append(failure)
            note("brute-force", user, host, at.brute[user], failure)
            note("low-and-slow", user, host, at.slow[user], failure, explained=bool(at.brute[user].episode))
            note("spray", None, host, at.spray, failure)
            explained = any(state.episode for state in (*at.brute.values(), *at.slow.values(), at.spray))
            note("brute-force-host", None, host, at.host, failure, explained=explained)
            explained = explained or bool(at.host.episode)
            note("low-and-slow-host", None, host, at.slow_host, failure, explained=explained)
            if user:
                users[user].add(Failure(record.t, host, 1))
                report("distributed", user, None, None, users[user].episode, ended=False)
    if as_of is not None:
        end_all(as_of)
    return set(found.values())


def rule_counts(records: Iterable[tuple[str, int, int, Record]]) -> set[tuple[str, str, str, int, int]]:
    """Return counts of allowed and denied by day, vhost and rule, for every rule in force that day."""
    day = 86_400 * SECOND
    unique = {(router, boot, n): record for router, boot, n, record in records}
    ordered = sorted(unique.items(), key=lambda item: (item[1].t, *item[0]))
    counts: dict[tuple[int, str, str], list[int]] = {}
    in_force: dict[tuple[str, str], list[str]] = {}
    last_day = max((record.t // day for record in unique.values()), default=0)
    begun: int | None = None
    for (router, _, _), record in ordered:
        today = record.t // day
        for passed in range(begun if begun is not None else today, today + 1):
            _loaded(counts, in_force, passed)
        begun = today
        if isinstance(record, PolicyLoaded):
            in_force[router, record.vhost] = record.rules
            _loaded(counts, in_force, today)
        if isinstance(record, PolicyDecision) and record.vhost is not None:
            cell = counts.setdefault((today, record.vhost, record.rule), [0, 0])
            cell[0 if record.allow else 1] += record.repeat
    for passed in range(begun if begun is not None else last_day, last_day + 1):
        _loaded(counts, in_force, passed)
    return {(str(today), vhost, rule, *cell) for (today, vhost, rule), cell in counts.items()}  # type: ignore[misc]


def _loaded(
    counts: dict[tuple[int, str, str], list[int]], in_force: dict[tuple[str, str], list[str]], today: int
) -> None:
    for (_, vhost), rules in in_force.items():
        for rule in rules:
            counts.setdefault((today, vhost, rule), [0, 0])
