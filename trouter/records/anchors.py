"""Heads: hashes of segments that the router sends elsewhere, and their comparison with the segments of a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from trouter.records.segments import SegmentPosition, place_of

HEAD_KIND: Final = "records.head"
#: A longer line is no head.
MAX_HEAD_BYTES: Final = 4096


class SegmentHead(msgspec.Struct, kw_only=True, tag_field="k", tag=HEAD_KIND, frozen=True):
    """The state of a segment at a moment.

    ``seg`` is its name when it is complete, ``n`` the number of its last record then, ``t`` the time in microseconds
    since 1970, and ``sha`` the SHA-256 of its octets through that record, in hexadecimal.
    """

    router: str
    boot: int
    seg: str
    n: int
    t: int
    sha: str


_HEAD: Final = msgspec.json.Decoder(SegmentHead)


def heads_in(path: Path) -> list[SegmentHead]:
    """Return the heads in a file, one a line as `trouter receive` writes them; OSError, ValueError with the line."""
    found = []
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_HEAD_BYTES):
            number += 1
            if line.isspace():
                continue
            try:
                head = _HEAD.decode(line)
            except ValueError as error:
                raise ValueError(f"{path}: line {number}: this is no head as a router sends it: {error}") from None
            if place_of(Path(head.seg)) is None:
                raise ValueError(f"{path}: line {number}: {head.seg!r} is no name of a segment")
            found.append(head)
    return found


class Anchors:
    """Heads that were received, compared with the segments that are read; what is wrong is added to ``errors``."""

    def __init__(self, heads: Iterable[SegmentHead], errors: list[str], notes: list[str]) -> None:
        self._errors = errors
        self._notes = notes
        self._waiting: dict[tuple[str, int], set[str]] = {}
        for head in heads:
            self._waiting.setdefault((head.seg, head.n), set()).add(head.sha)
        self._count = len(self._waiting)

    def read(self, place: SegmentPosition, number: int, sha: Callable[[], str]) -> bool:
        """Compare the head of a record that was just read; return whether there is one, and it fits.

        ``sha`` returns the SHA-256 of all octets through that record.
        """
        sent = self._waiting.pop((place.name, number), None)
        if sent is None:
            return False
        if sent != {sha()}:
            self._errors.append(f"{place.path}: is not as it was when the head of record {number} was sent")
            return False
        return True

    def conclude(self, is_deleted: Callable[[SegmentPosition, int], bool]) -> None:
        """Report the heads whose records are missing; note how many are of segments that the router has deleted."""
        gone = []
        for name, number in sorted(self._waiting):
            place = place_of(Path(name))
            assert place is not None  # noqa: S101 - heads_in has read the name
            if is_deleted(place, number):
                gone.append(name)
            else:
                self._errors.append(
                    f"{name}: record {number} is missing, its head was sent, and no record that a later head or a seal "
                    "covers reports the deletion"
                )
        note = f"{self._count - len(self._waiting)} heads compared"
        if gone:
            note += f", {len(gone)} of segments deleted since, as reported, the last of which is {gone[-1]}"
        self._notes.append(note)
