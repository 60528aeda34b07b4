"""Attacks in a router's records: records in, alerts out, in the order of time, in bounded memory.

A judge sees all records about one subject (a host, a user, or one user at one host in one vhost). It uses no Spark and
no clock: ``detector.py`` sorts the records and keeps the states. The rules:

    brute-force          so many failures of one user at one host
    brute-force-host     so many failures at one host, which neither one user nor many of them explain
    distributed          so many failures of one user, at so many hosts
    spray                so many users failed at one host and have not logged in there since
    low-and-slow         so many failures of one user at one host in the long window, and no success
    low-and-slow-host    so many failures of several users at one host in the long window, and no success of any user
    success-after        a success right after so many failures of that user at that host, or while it is low-and-slow
    denial-burst         so many denials by the policy to one user at one host

After an alert, its rule gives no other about the subject until a whole window was quiet. While an attack goes on, its
alert is repeated once in a window, and at last with ``ended`` and the totals, under the same id. Ids derive from the
records, so a job that sees them again gives the same ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Final, Protocol

import msgspec

from trouter_pipeline.windows import MAX_EVIDENCE, MAX_MEMBERS, Episode, Rule, Seen, Watch, Window

_SECOND_US: Final = 1_000_000
_MAX_S: Final = 31_536_000
_MAX_COUNT: Final = 10_000
_NEVER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of ordinary behaviour: a count that reaches one is an alert. Times in seconds."""

    window_s: int = field(default=600, metadata={"help": "the window of all rules but low-and-slow, in seconds"})
    brute_failures: int = field(default=20, metadata={"help": "failures of a user at a host"})
    host_failures: int = field(default=50, metadata={"help": "failures at a host, of any users"})
    distributed_failures: int = field(default=20, metadata={"help": "failures of a user, at several hosts"})
    distributed_hosts: int = field(default=10, metadata={"help": "the hosts that those must come from"})
    spray_users: int = field(default=15, metadata={"help": "users who fail at a host"})
    success_after: int = field(default=10, metadata={"help": "failures before a success"})
    slow_failures: int = field(default=24, metadata={"help": "failures without a success in the long window"})
    slow_window_s: int = field(default=43_200, metadata={"help": "the long window, in seconds"})
    denials: int = field(default=100, metadata={"help": "denials to a user at a host"})

    def __post_init__(self) -> None:
        for each in fields(self):
            value, maximum = getattr(self, each.name), _MAX_S if each.name.endswith("_s") else _MAX_COUNT
            if not 1 <= value <= maximum:
                raise ValueError(f"{each.name} is {value}: it must be at least 1 and at most {maximum}")


class Rules:
    """The rules with the values of ``limits``."""

    def __init__(self, limits: Limits) -> None:
        window, slow = limits.window_s * _SECOND_US, limits.slow_window_s * _SECOND_US
        self.brute = Rule("brute-force", window, limits.brute_failures)
        self.host = Rule("brute-force-host", window, limits.host_failures)
        self.distributed = Rule("distributed", window, limits.distributed_failures, limits.distributed_hosts)
        self.spray = Rule("spray", window, 1, limits.spray_users)
        self.slow = Rule("low-and-slow", slow, limits.slow_failures)
        self.slow_host = Rule("low-and-slow-host", slow, limits.slow_failures, 2)
        self.after = Rule("success-after", window, limits.success_after)
        self.denials = Rule("denial-burst", window, limits.denials)
        #: No episode of a user ends sooner.
        self.shortest_us = min(window, slow)


class Subject(msgspec.Struct, frozen=True):
    """The subject of a judge; ``scope`` is one of ``STATES``, and fields that the scope does not use are None."""

    scope: str
    host: str | None = None
    user: str | None = None
    vhost: str | None = None


class Alert(msgspec.Struct, frozen=True):
    """An attack: when it is noticed, while it goes on, and when it is over; each alert replaces the one before.

    ``distinct`` is the number of different users, hosts or addresses in it, as far as they are kept; ``evidence`` are
    its first records, as router~boot~number.
    """

    alert_id: str
    rule: str
    user: str | None
    host: str | None
    vhost: str | None
    first_us: int
    last_us: int
    failures: int
    distinct: int
    evidence: list[str]
    ended: bool


class Judge(Protocol):
    """Judges the events of one subject."""

    #: Stored between two batches.
    state: Any

    def feed(self, seen: Seen) -> Iterator[Alert]:
        """Yield alerts for the next record."""

    def expire(self, now: int) -> Iterator[Alert]:
        """Yield alerts that are over at ``now``, before which all was fed; forget what is too old."""

    def due(self) -> int | None:
        """Return when ``expire`` will have work; None if nothing is left."""


def _alert(rule: Rule, subject: Subject, user: str | None, episode: Episode, *, ended: bool) -> Alert:
    what = (rule.name, user or "", subject.host or "", subject.vhost or "", str(episode.first))
    return Alert(
        alert_id=hashlib.sha256("\0".join(what).encode("utf-8", "surrogatepass")).hexdigest()[:32],
        rule=rule.name,
        user=user or None,
        host=subject.host,
        vhost=subject.vhost,
        first_us=episode.first,
        last_us=episode.last,
        failures=episode.count,
        distinct=len(episode.members),
        evidence=list(episode.evidence),
        ended=ended,
    )


class OneRule:
    """Watches a subject by a single rule: a user at all hosts, or the denials of a user at a host."""

    def __init__(self, rule: Rule, subject: Subject, state: Watch) -> None:
        self.state = state
        self._rule = rule
        self._subject = subject

    def feed(self, seen: Seen) -> Iterator[Alert]:
        yield from self.expire(seen.t)
        if not seen.ok and self.state.note(self._rule, seen):
            yield from self._alerts(self.state.episode, ended=False)

    def expire(self, now: int) -> Iterator[Alert]:
        yield from self._alerts(self.state.ended(self._rule, now), ended=True)
        self.state.window.move(self._rule, now)

    def due(self) -> int | None:
        return self.state.due(self._rule)

    def _alerts(self, episode: Episode | None, *, ended: bool) -> Iterator[Alert]:
        if episode is not None:
            yield _alert(self._rule, self._subject, self._subject.user, episode, ended=ended)


class Guessed(msgspec.Struct, array_like=True):
    """The state of one user at one host; ``since`` are the failures since the last success."""

    brute: Watch = msgspec.field(default_factory=Watch)
    slow: Watch = msgspec.field(default_factory=Watch)
    since: Window = msgspec.field(default_factory=Window)

    def due(self, rules: Rules) -> int | None:
        """Return when the first of its windows ends, None if all are empty."""
        return _soonest(self.brute.due(rules.brute), self.slow.due(rules.slow))


class HostState(msgspec.Struct, array_like=True):
    """The state of a host.

    ``open`` are the users with an episode, none of which ends before ``quiet``.
    """

    users: dict[str, Guessed] = msgspec.field(default_factory=dict)
    host: Watch = msgspec.field(default_factory=Watch)
    spray: Watch = msgspec.field(default_factory=Watch)
    slow: Watch = msgspec.field(default_factory=Watch)
    open: dict[str, None] = msgspec.field(default_factory=dict)
    quiet: int = 0


class HostJudge:
    """Watches the logins from one host; members are users.

    Quiet episodes end before the next record is judged, so it does not matter when ``expire`` is called.
    """

    def __init__(self, rules: Rules, subject: Subject, state: HostState) -> None:
        self.state = state
        self._rules = rules
        self._subject = subject
        self._of_host = ((state.host, rules.host), (state.spray, rules.spray), (state.slow, rules.slow_host))

    def feed(self, seen: Seen) -> Iterator[Alert]:
        yield from self._end(seen.t)
        yield from (self._let_in if seen.ok else self._turned_away)(seen)

    def _turned_away(self, seen: Seen) -> Iterator[Alert]:
        rules, state, user = self._rules, self.state, seen.member
        guessed = state.users.pop(user, None) or Guessed()
        state.users[user] = guessed  # last, because the first is forgotten first
        guessed.since.add(rules.after, seen)
        yield from self._note(guessed.brute, rules.brute, seen, user)
        yield from self._note(guessed.slow, rules.slow, seen, user, explained=guessed.brute.episode is not None)
        if guessed.brute.episode is not None or guessed.slow.episode is not None:
            state.open[user] = None
            state.quiet = min(state.quiet if len(state.open) > 1 else _NEVER, seen.t + rules.shortest_us)
        yield from self._note(state.spray, rules.spray, seen)
        explained = bool(state.open) or state.spray.episode is not None
        yield from self._note(state.host, rules.host, seen, explained=explained)
        explained = explained or state.host.episode is not None
        yield from self._note(state.slow, rules.slow_host, seen, explained=explained)
        if len(state.users) > MAX_MEMBERS:
            yield from self._make_room(seen.t)

    def _note(
        self, watch: Watch, rule: Rule, seen: Seen, user: str | None = None, *, explained: bool = False
    ) -> Iterator[Alert]:
        """Count a failure, unless another open alert explains it."""
        if explained and watch.episode is None:
            watch.close()
        elif watch.note(rule, seen):
            yield from self._alerts(rule, watch.episode, user, ended=False)

    def _let_in(self, seen: Seen) -> Iterator[Alert]:
        rules, state, user = self._rules, self.state, seen.member
        state.spray.window.without(user)
        yield from self._alerts(rules.slow_host, state.slow.close(), None, ended=True)
        guessed = state.users.get(user)
        if guessed is None:
            return
        guessed.since.move(rules.after, seen.t)
        before = guessed.slow.close()
        if before is not None or guessed.since.reaches(rules.after):
            whole = msgspec.structs.replace(before or Episode.of(guessed.since.sightings()), last=seen.t)
            whole.evidence = [*whole.evidence[: MAX_EVIDENCE - 1], seen.reference]
            yield from self._alerts(rules.after, whole, user, ended=True)
        yield from self._alerts(rules.slow, before, user, ended=True)
        guessed.since.clear()
        if guessed.brute.episode is None:
            state.open.pop(user, None)

    def expire(self, now: int) -> Iterator[Alert]:
        yield from self._end(now)
        for watch, rule in self._of_host:
            watch.window.move(rule, now)
        self._forget_users(now)

    def _end(self, now: int) -> Iterator[Alert]:
        """End the episodes that were quiet for their window."""
        state = self.state
        for watch, rule in self._of_host:
            yield from self._alerts(rule, watch.ended(rule, now), None, ended=True)
        if not state.open or now <= state.quiet:
            return
        for user in list(state.open):
            yield from self._end_user(user, state.users[user], now)
        episodes = (each for user in state.open for each in self._episodes(state.users[user]))
        state.quiet = min((episode.last + rule.window_us for episode, rule in episodes), default=_NEVER)

    def _end_user(self, user: str, guessed: Guessed, now: int) -> Iterator[Alert]:
        yield from self._alerts(self._rules.brute, guessed.brute.ended(self._rules.brute, now), user, ended=True)
        yield from self._alerts(self._rules.slow, guessed.slow.ended(self._rules.slow, now), user, ended=True)
        if guessed.brute.episode is None and guessed.slow.episode is None:
            del self.state.open[user]

    def _episodes(self, guessed: Guessed) -> Iterator[tuple[Episode, Rule]]:
        for watch, rule in ((guessed.brute, self._rules.brute), (guessed.slow, self._rules.slow)):
            if watch.episode is not None:
                yield watch.episode, rule

    def _forget_users(self, now: int) -> None:
        """Forget users without relevant state; windows that have not moved are moved first."""
        rules, users = self._rules, self.state.users
        for user, guessed in list(users.items()):
            guessed.brute.window.move(rules.brute, now)
            guessed.slow.window.move(rules.slow, now)
            if guessed.due(rules) is None:  # ``since`` has nothing that is not in one of these
                del users[user]

    def _make_room(self, now: int) -> Iterator[Alert]:
        """Keep the users that failed last if there are too many, and end the alerts of the others."""
        state = self.state
        self._forget_users(now)
        if len(state.users) <= MAX_MEMBERS:
            return
        for user in list(state.users)[: len(state.users) - MAX_MEMBERS * 7 // 8]:
            guessed = state.users.pop(user)
            state.open.pop(user, None)
            for episode, rule in self._episodes(guessed):
                yield from self._alerts(rule, episode, user, ended=True)

    def due(self) -> int | None:
        state, rules = self.state, self._rules
        return _soonest(
            *(watch.due(rule) for watch, rule in self._of_host),
            *(guessed.due(rules) for guessed in state.users.values()),
        )

    def _alerts(self, rule: Rule, episode: Episode | None, user: str | None, *, ended: bool) -> Iterator[Alert]:
        if episode is not None:
            yield _alert(rule, self._subject, user, episode, ended=ended)


def _soonest(*moments: int | None) -> int | None:
    return min((moment for moment in moments if moment is not None), default=None)


def judge_of(rules: Rules, subject: Subject, state: Any) -> Judge:
    """Return the judge of a subject; ``state`` is of type ``STATES[scope]``, a new one for a new subject."""
    if subject.scope == "host":
        return HostJudge(rules, subject, state)
    return OneRule(rules.distributed if subject.scope == "user" else rules.denials, subject, state)


#: State by scope: the logins at a host, the failures of a user, the denials of a user at a host.
STATES: Final[dict[str, type[HostState | Watch]]] = {"host": HostState, "user": Watch, "denied": Watch}
