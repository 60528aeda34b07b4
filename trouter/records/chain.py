"""Verifies the chain of a folder's segments: each header names the segment before and has its SHA-256."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from trouter.records.segments import EMPTY, SegmentHeader, SegmentPosition, place_of


class _Before(NamedTuple):
    """The segment of a router that was read last; ``sha`` is empty if it could not be read."""

    name: str
    sha: str
    chained: bool


class Missing(NamedTuple):
    """A segment that another one follows and that is not in the folder; a record should report its deletion.

    ``path`` is that of the segment that follows; ``before`` is the chained segment that was read before that, if any.
    """

    path: Path
    place: SegmentPosition
    before: SegmentPosition | None


class Chain:
    """The links between the segments of a folder, which are read in order."""

    def __init__(self, places: Iterable[SegmentPosition], errors: list[str], notes: list[str]) -> None:
        """Add what is wrong to ``errors``, and what cannot be verified to ``notes``."""
        self.missing: list[Missing] = []
        #: The missing segment before the oldest one of each router.
        self.before_oldest: dict[str, Missing] = {}
        self._present = {place.name for place in places if place.rest != EMPTY}
        self._errors = errors
        self._notes = notes
        self._before: dict[str, _Before] = {}

    def begin(self, place: SegmentPosition, header: SegmentHeader) -> bool:
        """Verify the link of a segment to the one before; return whether it proves that one."""
        before = self._before.get(place.router)
        if not header.after:
            if before is not None and before.chained:
                self._notes.append(
                    f"{place.path}: has no link to {before.name}: an older version wrote it, or it was written anew"
                )
            return False
        if before is None or before.name != header.after:
            self._follow_other(place, header.after, before)
            return False
        if not header.prev:
            self._notes.append(f"{place.path}: has no hash of {before.name}, which the router could not read then")
        elif before.sha and before.sha != header.prev:
            self._errors.append(f"{place.path}: byte 0: {before.name} is not as it was when this segment was begun")
        return before.sha == header.prev != ""

    def _follow_other(self, place: SegmentPosition, after: str, before: _Before | None) -> None:
        """Note that a segment does not follow the one that was read before it."""
        if before is not None and after in self._present:
            self._errors.append(f"{place.path}: byte 0: follows {after}, and {before.name} is between them")
            return
        gone = place_of(place.path.with_name(after))
        if gone is None or gone.router != place.router or gone[:3] >= place[:3]:
            self._errors.append(f"{place.path}: byte 0: {after} cannot be the segment before this one")
        else:
            chained = None if before is None or not before.chained else place_of(place.path.with_name(before.name))
            missing = Missing(place.path, gone, chained)
            self.missing.append(missing)
            if before is None:
                self.before_oldest[place.router] = missing

    def end(self, place: SegmentPosition, sha: str, header: SegmentHeader, *, hashed: bool) -> None:
        """Note the SHA-256 of a segment that was read, "" if it is damaged; ``hashed`` if its trailer has one."""
        self._before[place.router] = _Before(place.name, sha, hashed or bool(header.after))
