"""Where segments were deleted out of the middle: which numbers of each start of a router are gone for that reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from trouter.records.segments import Entry

DELETED: Final = "deleted"
_ENTRY: Final = msgspec.json.Decoder(Entry)


class Hole(NamedTuple):
    """Numbers of one start that are gone."""

    boot: int
    first: int
    last: int


class Holes:
    """Runs of missing numbers, adjacent ones joined, and which record of this start reports each."""

    def __init__(self) -> None:
        self._told: dict[Hole, int | None] = {}

    def __len__(self) -> int:
        return len(self._told)

    def __iter__(self) -> Iterator[Hole]:
        return iter(self._told)

    def add(self, hole: Hole) -> Hole:
        """Note that numbers are gone; return the hole they are now part of, of which no record tells yet."""
        boot, first, last = hole
        for each in list(self._told):
            if each.boot == boot and each.first <= last + 1 and each.last >= first - 1:
                first, last = min(first, each.first), max(last, each.last)
                del self._told[each]
        hole = Hole(boot, first, last)
        self._told[hole] = None
        return hole

    def tell(self, hole: Hole, number: int) -> None:
        """Note that the record of this number tells of a hole, if it still is as it was."""
        if hole in self._told:
            self._told[hole] = number

    def to_tell(self, first: int, last: int) -> list[Hole]:
        """Return the holes of which no record of this start tells once those with these numbers are gone."""
        return [hole for hole, number in self._told.items() if number is None or first <= number <= last]

    def forget(self, boot: int) -> None:
        """Forget the start ``boot``: no record of it is left, so none of it counts as missing."""
        self._told = {hole: number for hole, number in self._told.items() if hole.boot != boot}


def deleted_in(manifest: Path) -> list[tuple[int, int]]:
    """Return first and last numbers of segments that a manifest says were deleted; none if it cannot be read."""
    try:
        lines = manifest.read_bytes().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        if b'"deleted"' in line:
            try:
                entry = _ENTRY.decode(line)
            except ValueError:
                continue
            if entry.state == DELETED and entry.last >= entry.first:
                found.append((entry.first, entry.last))
    return found
