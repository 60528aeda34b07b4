"""Missing records that no record reports yet, joined into ranges so that the list stays short."""

from __future__ import annotations

from collections import Counter
from typing import Final

from trouter.records.runs import run_of
from trouter.records.schema import RecordsDropped

#: The reason in reports of deleted segments.
RETENTION: Final = "retention"
#: Gaps that are kept one by one until they can be reported; adjacent ones beyond that are joined.
_MAX_GAPS: Final = 100


class Losses:
    """Gaps that no record reports yet, in order. The writer of the segments owns it."""

    def __init__(self) -> None:
        self._gaps: list[RecordsDropped] = []

    def __bool__(self) -> bool:
        return bool(self._gaps)

    def take_gaps(self) -> list[RecordsDropped]:
        """Remove and return all gaps."""
        taken, self._gaps = self._gaps, []
        return taken

    def put_back(self, taken: list[RecordsDropped]) -> None:
        """Put gaps that could not be written back, before those that came since."""
        self._gaps = taken + self._gaps

    def add_dropped(self, reason: str, first: int, kinds: Counter[str]) -> None:
        """Note that records from number ``first`` on were dropped; ``kinds`` has the number of each kind."""
        count = kinds.total()
        last = self._gaps[-1] if self._gaps else None
        if last is not None and last.to_n == first - 1 and (last.reason == reason or len(self._gaps) >= _MAX_GAPS):
            last.to_n = first + count - 1
            last.count += count
            last.by_kind = dict(Counter(last.by_kind) + kinds)
            return
        self.add(RecordsDropped(reason=reason, from_n=first, to_n=first + count - 1, count=count, by_kind=dict(kinds)))

    def add(self, dropped: RecordsDropped) -> None:
        """Note a gap. A deletion that covers earlier ones replaces them."""
        if dropped.reason == RETENTION:
            within = [
                known
                for known in self._gaps
                if known.reason == RETENTION
                and known.boot == dropped.boot
                and dropped.from_n <= known.from_n
                and known.to_n <= dropped.to_n
                and _names_all(dropped, known)
            ]
            for known in within:
                dropped.count += known.count
                self._gaps.remove(known)
        self._gaps.append(dropped)


def _names_all(dropped: RecordsDropped, known: RecordsDropped) -> bool:
    """Return whether a report names all segments that another one names."""
    run, other = run_of(dropped), run_of(known)
    return other is None or (run is not None and run.includes(other.begin) and run.includes(other.end))
