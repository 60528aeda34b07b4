"""Counting in a window that moves with what is seen: when is it too much, and when is it over? No Spark, no clock.

A window has both its ends: two sightings that are exactly its length apart stand in one. Once it is too much, an
episode begins, and lasts until nothing was seen for a whole window. All of it is small, whatever is seen, and can be
written down between two batches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

#: Members of an episode that are told apart.
MAX_MEMBERS: Final = 1024
#: Records that an episode names.
MAX_EVIDENCE: Final = 32


class Seen(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Something that counts, or with ``ok`` something that went well. ``t`` in microseconds.

    ``member`` is what is told apart within the subject: the user at a host, the host of a user, the address denied.
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
        """Time, and what tells two records of one moment apart; the same record twice has the same."""
        return self.t, self.router, self.boot, self.n

    @property
    def reference(self) -> str:
        """Where to find the record."""
        return f"{self.router}~{self.boot}~{self.n}"


@dataclass(frozen=True, slots=True)
class Rule:
    """How much in which window is too much: ``count`` by weight, of at least ``distinct`` members."""

    name: str
    window_us: int
    count: int
    distinct: int = 1


class Episode(msgspec.Struct, array_like=True):
    """Too much, from the first that was in the window to the last."""

    first: int
    last: int
    count: int
    members: dict[str, None]
    evidence: list[str]
    #: When it was told last.
    told: int = 0

    @classmethod
    def of(cls, sightings: Iterable[Seen]) -> Episode:
        """These, of which there is at least one, in their order."""
        each_once = {each.order: each for each in sightings}
        those = [each_once[order] for order in sorted(each_once)]
        episode = cls(those[0].t, those[0].t, 0, {}, [])
        for each in those:
            episode.add(each)
        episode.told = episode.last
        return episode

    def add(self, seen: Seen) -> None:
        self.last = seen.t
        self.count += seen.weight
        if len(self.members) < MAX_MEMBERS:
            self.members[seen.member] = None
        if len(self.evidence) < MAX_EVIDENCE:
            self.evidence.append(seen.reference)


class Window(msgspec.Struct, array_like=True):
    """The last sightings, no more than decide: ``count`` of them, and the last of each of ``distinct`` members."""

    recent: list[Seen] = msgspec.field(default_factory=list)
    members: dict[str, Seen] = msgspec.field(default_factory=dict)

    def add(self, rule: Rule, seen: Seen) -> None:
        """What is the latest of all so far."""
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
        """Forget what is too old to count at ``now``."""
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
        """Whether it is too much."""
        if rule.distinct > 1 and len(self.members) < rule.distinct:
            return False
        return len(self.recent) >= rule.count or sum(each.weight for each in self.recent) >= rule.count

    def sightings(self) -> list[Seen]:
        return [*self.recent, *self.members.values()]

    def clear(self) -> None:
        self.recent, self.members = [], {}


class Watch(msgspec.Struct, array_like=True):
    """What one rule remembers of one subject."""

    window: Window = msgspec.field(default_factory=Window)
    episode: Episode | None = None

    def note(self, rule: Rule, seen: Seen) -> bool:
        """Add what comes after all so far; whether an episode begins, or has gone on for a window since it was told.

        What was over was ``ended`` before.
        """
        self.window.add(rule, seen)
        if self.episode is not None:
            self.episode.add(seen)
            goes_on = seen.t - self.episode.told >= rule.window_us
            if goes_on:
                self.episode.told = seen.t
            return goes_on
        if self.window.reaches(rule):
            self.episode = Episode.of(self.window.sightings())
            return True
        return False

    def ended(self, rule: Rule, now: int) -> Episode | None:
        """The episode, once, when nothing was seen for a window; then everything begins anew."""
        if self.episode is None or now - self.episode.last <= rule.window_us:
            return None
        return self.close()

    def close(self) -> Episode | None:
        """Begin anew; the episode if there is one."""
        episode, self.episode = self.episode, None
        self.window.clear()
        return episode

    def due(self, rule: Rule) -> int | None:
        """When nothing of this will matter any more; None if nothing does."""
        if self.episode is not None:
            return self.episode.last + rule.window_us + 1
        return self.window.recent[-1].t + rule.window_us + 1 if self.window.recent else None
