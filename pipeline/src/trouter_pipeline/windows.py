"""Counting in a moving window: when a rule is broken, and when that is over. Without Spark and without a clock.

A window includes both ends: sightings exactly its length apart are in one window. An episode begins when the rule is
broken, and lasts until nothing was seen for a whole window. All states have bounded size and can be stored between
batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

#: Members of an episode that are kept.
MAX_MEMBERS: Final = 1024
#: Records that an episode names.
MAX_EVIDENCE: Final = 32


class Seen(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A failure that counts, or with ``ok`` a success. ``t`` is in microseconds since 1970.

    ``member`` is distinguished within the subject: the user at a host, the host of a user, the denied address.
    """

    t: int
    router: str
    boot: int
    n: int
    ok: bool
    member: str
    weight: int

    @property
    def order(self) -> tuple[int, str, int, int]:
        """Time and identity of the record, which are equal only for repetitions of it."""
        return self.t, self.router, self.boot, self.n

    @property
    def reference(self) -> str:
        """The record's identity: router, start and number."""
        return f"{self.router}~{self.boot}~{self.n}"


@dataclass(frozen=True, slots=True)
class Rule:
    """The limit of a rule: ``count`` by weight within the window, of at least ``distinct`` members."""

    name: str
    window_us: int
    count: int
    distinct: int = 1


class Episode(msgspec.Struct, array_like=True):
    """A broken rule, from the first sighting in the window to the last."""

    first: int
    last: int
    count: int
    members: dict[str, None]
    evidence: list[str]
    #: When it was last reported.
    reported_us: int = 0

    @classmethod
    def of(cls, sightings: Iterable[Seen]) -> Episode:
        """Return an episode of these sightings, at least one."""
        each_once = {each.order: each for each in sightings}
        those = [each_once[order] for order in sorted(each_once)]
        episode = cls(those[0].t, those[0].t, 0, {}, [])
        for each in those:
            episode.add(each)
        episode.reported_us = episode.last
        return episode

    def add(self, seen: Seen) -> None:
        self.last = seen.t
        self.count += seen.weight
        if len(self.members) < MAX_MEMBERS:
            self.members[seen.member] = None
        if len(self.evidence) < MAX_EVIDENCE:
            self.evidence.append(seen.reference)


class Window(msgspec.Struct, array_like=True):
    """The last sightings, as many as decide: ``count`` of them, and the last of each of ``distinct`` members."""

    recent: list[Seen] = msgspec.field(default_factory=list)
    members: dict[str, Seen] = msgspec.field(default_factory=dict)

    def add(self, rule: Rule, seen: Seen) -> None:
        """Add the latest sighting."""
        self.move(rule, seen.t)
        self.recent.append(seen)
        if len(self.recent) > rule.count:
            del self.recent[0]
        if rule.distinct > 1:
            self.members.pop(seen.member, None)
            self.members[seen.member] = seen
            if len(self.members) > rule.distinct:
                del self.members[next(iter(self.members))]

    def move(self, rule: Rule, now: int) -> None:
        """Forget sightings that are too old at ``now``."""
        oldest = now - rule.window_us
        if self.recent and self.recent[0].t < oldest:
            self.recent = [each for each in self.recent if each.t >= oldest]
        for member in [member for member, each in self.members.items() if each.t < oldest]:
            del self.members[member]

    def without(self, member: str) -> None:
        """Forget a member."""
        if self.members.pop(member, None) is not None:
            self.recent = [each for each in self.recent if each.member != member]

    def reaches(self, rule: Rule) -> bool:
        """Return whether the rule is broken."""
        if rule.distinct > 1 and len(self.members) < rule.distinct:
            return False
        return len(self.recent) >= rule.count or sum(each.weight for each in self.recent) >= rule.count

    def sightings(self) -> list[Seen]:
        return [*self.recent, *self.members.values()]

    def clear(self) -> None:
        self.recent, self.members = [], {}


class Watch(msgspec.Struct, array_like=True):
    """The state of one rule for one subject."""

    window: Window = msgspec.field(default_factory=Window)
    episode: Episode | None = None

    def note(self, rule: Rule, seen: Seen) -> bool:
        """Add the latest sighting; return whether an episode begins, or has gone on for a window since its last report.

        The caller has ended an episode that was over with ``ended``.
        """
        self.window.add(rule, seen)
        if self.episode is not None:
            self.episode.add(seen)
            goes_on = seen.t - self.episode.reported_us >= rule.window_us
            if goes_on:
                self.episode.reported_us = seen.t
            return goes_on
        if self.window.reaches(rule):
            self.episode = Episode.of(self.window.sightings())
            return True
        return False

    def ended(self, rule: Rule, now: int) -> Episode | None:
        """Return and end the episode if nothing was seen for a window, otherwise None."""
        if self.episode is None or now - self.episode.last <= rule.window_us:
            return None
        return self.close()

    def close(self) -> Episode | None:
        """Clear the state; return the episode, or None."""
        episode, self.episode = self.episode, None
        self.window.clear()
        return episode

    def due(self, rule: Rule) -> int | None:
        """Return when the state becomes irrelevant; None if it is empty."""
        if self.episode is not None:
            return self.episode.last + rule.window_us + 1
        return self.window.recent[-1].t + rule.window_us + 1 if self.window.recent else None
