"""What a start of the router continues from: its last segment and seal, compared with the manifests and the key.

A manifest proves nothing, and the router believes its sums and counts in nothing. Where one contradicts the segments,
a user of the machine or the disk has changed one of them, and the operator has to know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from trouter.records.deletions import Deletions
from trouter.records.holes import DELETED, boots_with_manifest, entries_in
from trouter.records.reader import content_digest, deletions_in, last_trailer, seals_in
from trouter.records.runs import run_of
from trouter.records.segments import (
    EMPTY,
    ManifestEntry,
    SegmentPosition,
    manifest_name,
    place_of,
    position_of,
)


def contradictions(
    folder: Path, label: str, kept: Sequence[SegmentPosition], deleted: Deletions, next_seal: int | None
) -> list[str]:
    """Return what contradicts the complete segments ``kept`` of a router, in sentences for the operator; OSError.

    ``next_seal`` is the number of the seal that the router's key is for, None without a key.
    """
    whole = [place for place in kept if place.rest != EMPTY]
    entries = _last_entries(folder, label)
    return [
        *_missing_segments(entries, kept),
        *(_changed_end(whole[-1], entries.get(whole[-1].name)) if whole else ()),
        *(_missing_key(whole) if next_seal is None else _missing_seals(whole, deleted, next_seal)),
    ]


def unreported_deletions(folder: Path, label: str, kept: Sequence[SegmentPosition]) -> Iterator[str]:
    """Yield a sentence for segments that a manifest calls deleted, and no record of ``kept`` does; OSError."""
    entries = _last_entries(folder, label).values()
    names = _unreported([entry.seg for entry in entries if entry.state == DELETED and entry.run is not None], kept)
    if names:
        yield f"the manifest lists {names[-1]} as deleted, which no record reports{_and_others(names)}"


def _unreported(names: Iterable[str], kept: Sequence[SegmentPosition]) -> list[str]:
    """Return those of the segments ``names`` that no record of ``kept`` reports as deleted."""
    left = list(names)
    for place in reversed(kept):
        if not left:
            break
        runs = [run for report in deletions_in(place.path) if (run := run_of(report)) is not None]
        left = [name for name in left if not any(run.includes(position_of(name)) for run in runs)]
    return left


def _last_entries(folder: Path, label: str) -> dict[str, ManifestEntry]:
    """Return the last entry of each segment in the manifests of a router."""
    manifests = [folder / manifest_name(label, boot) for boot in sorted(boots_with_manifest(folder, label))]
    entries = (entry for manifest in manifests for entry in entries_in(manifest))
    return {entry.seg: entry for entry in entries if _is_of(label, entry.seg)}


def _is_of(label: str, segment: str) -> bool:
    """Return whether a text is the name of a complete segment of a router."""
    place = place_of(Path(segment))
    return place is not None and (place.router, place.name) == (label, segment)


def _missing_segments(entries: dict[str, ManifestEntry], kept: Sequence[SegmentPosition]) -> Iterator[str]:
    """Yield a sentence for segments that are listed as complete, and that are neither here nor reported as deleted.

    A manifest may lack what the router has deleted: it was killed before it noted that, or the disk was full.
    """
    names = {place.name for place in kept}
    listed = sorted(name for name, entry in entries.items() if entry.state != DELETED and name not in names)
    if missing := _unreported(listed, kept):
        yield f"the manifest lists {missing[-1]}, which is not in the folder{_and_others(missing)}"


def _changed_end(place: SegmentPosition, entry: ManifestEntry | None) -> Iterator[str]:
    """Yield sentences if the last segment is not as its trailer and its manifest entry have it."""
    trailer = last_trailer(place.path)
    if trailer is None:
        yield f"{place.path.name} has no trailer that can be read"
        return
    if trailer.sha and content_digest(place.path) != trailer.sha:
        yield f"{place.path.name} is not as its trailer has it"
    own = (place.first, trailer.last, trailer.count, trailer.crc)
    if entry is not None and entry.state != DELETED and own != (entry.first, entry.last, entry.count, entry.crc):
        yield f"the manifest lists {place.name} with other numbers or another checksum"


def _missing_key(whole: Sequence[SegmentPosition]) -> Iterator[str]:
    """Yield a sentence if the last segment is sealed, so that the router had a key."""
    if whole and seals_in(whole[-1].path) is not None:
        yield f"{whole[-1].name} is sealed, and the key is missing, so that later records are not"


def _missing_seals(whole: Sequence[SegmentPosition], deleted: Deletions, next_seal: int) -> Iterator[str]:
    """Yield a sentence if the key is for a later seal than the one that follows the last."""
    last = deleted.last_seal()
    for place in reversed(whole):
        if last + 1 >= next_seal:
            return
        if (seals := seals_in(place.path)) is not None:
            last = max(last, seals[1])
            break
    if last + 1 < next_seal:
        yield f"seals {last + 1}-{next_seal - 1} are missing at the end: the router had made them"


def _and_others(names: Sequence[str]) -> str:
    """Return how many there are beside the one that a sentence names, "" for none."""
    return f", nor {len(names) - 1} more" if len(names) > 1 else ""
