"""Holes: numbers of each start of a router that are missing because segments were deleted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from trouter.records.segments import MANIFEST, ManifestEntry, entry_lines

DELETED: Final = "deleted"
_MAX_DIGITS: Final = 16
_ENTRY: Final = msgspec.json.Decoder(ManifestEntry)


class Hole(NamedTuple):
    """Missing numbers of one start of the router."""

    boot: int
    first: int
    last: int


class Holes:
    """Ranges of missing numbers, adjacent ones joined, and the number of the record that reports each."""

    def __init__(self) -> None:
        self._reports: dict[Hole, int | None] = {}

    def __len__(self) -> int:
        return len(self._reports)

    def __iter__(self) -> Iterator[Hole]:
        return iter(self._reports)

    def add(self, hole: Hole) -> Hole:
        """Note missing numbers; return the joined hole that they are part of, which no record reports yet.

        A hole of a segment without records, which ends before it begins, is joined to none beside it.
        """
        boot, first, last = hole
        for each in list(self._reports):
            if each.boot == boot and _joined(each, Hole(boot, first, last)):
                first, last = min(first, each.first), max(last, each.last)
                del self._reports[each]
        hole = Hole(boot, first, last)
        self._reports[hole] = None
        return hole

    def note_reported(self, hole: Hole, number: int) -> None:
        """Note that the record ``number`` reports the hole, unless it has grown since."""
        if hole in self._reports:
            self._reports[hole] = number

    def to_report(self, first: int, last: int) -> list[Hole]:
        """Return the holes that no record of this start reports, or only one numbered ``first`` to ``last``."""
        return [hole for hole, number in self._reports.items() if number is None or first <= number <= last]

    def forget_boot(self, boot: int) -> None:
        """Forget the holes of ``boot``: no segment is left that was written before its last or just after it."""
        self._reports = {hole: number for hole, number in self._reports.items() if hole.boot != boot}


def _joined(one: Hole, other: Hole) -> bool:
    """Return whether two holes of one start overlap, or are adjacent and both have numbers."""
    if one.last < one.first:
        return other.first <= one.first <= other.last
    if other.last < other.first:
        return one.first <= other.first <= one.last
    return one.first <= other.last + 1 and one.last >= other.first - 1


def boots_with_manifest(folder: Path, label: str) -> list[int]:
    """Return the starts of a router that have a manifest in the folder; OSError."""
    numbers = [path.name.removesuffix(MANIFEST).rpartition("~")[2] for path in folder.glob(f"{label}~*{MANIFEST}")]
    return [int(number) for number in numbers if number.isascii() and number.isdigit() and len(number) <= _MAX_DIGITS]


def entries_in(manifest: Path) -> Iterator[ManifestEntry]:
    """Yield the entries of a manifest that can be read; none if it cannot."""
    with suppress(OSError):
        for line in entry_lines(manifest):
            with suppress(ValueError):
                yield _ENTRY.decode(line)


def deleted_in(manifest: Path) -> list[ManifestEntry]:
    """Return the entries of the segments that a manifest calls deleted; [] if it cannot be read."""
    return [entry for entry in entries_in(manifest) if entry.state == DELETED]
