"""Missing records that no record reports yet, joined into ranges so that the list stays short."""

from __future__ import annotations

from collections import Counter
from typing import Final

from trouter.records.schema import RecordsDropped

#: Why records are gone that were deleted.
RETENTION: Final = "retention"
#: Gaps that are remembered, one by one, until they can be told; more of them are told as one.
_MAX_GAPS: Final = 100


class Losses:
    """Gaps that no record tells of yet, in their order. The writer of the segments owns it."""

    def __init__(self) -> None:
        self._untold: list[RecordsDropped] = []

    def __bool__(self) -> bool:
        return bool(self._untold)

    def take(self) -> list[RecordsDropped]:
        """Return all of them, and forget them."""
        taken, self._untold = self._untold, []
        return taken

    def put_back(self, taken: list[RecordsDropped]) -> None:
        """Remember what was taken and could not be written, before what came since."""
        self._untold = taken + self._untold

    def add_dropped(self, reason: str, first: int, kinds: Counter[str]) -> None:
        """Remember that the records with the numbers from ``first`` on were dropped, so many of each kind."""
        count = kinds.total()
        last = self._untold[-1] if self._untold else None
        if last is not None and last.to_n == first - 1 and (last.reason == reason or len(self._untold) >= _MAX_GAPS):
            last.to_n = first + count - 1
            last.count += count
            last.by_kind = dict(Counter(last.by_kind) + kinds)
            return
        self.add(RecordsDropped(reason=reason, from_n=first, to_n=first + count - 1, count=count, by_kind=dict(kinds)))

    def add(self, dropped: RecordsDropped) -> None:
        """Remember a gap. Of what was deleted, the last that is told of a hole says all."""
        if dropped.reason == RETENTION:
            within = [
                known
                for known in self._untold
                if known.reason == RETENTION
                and known.boot == dropped.boot
                and dropped.from_n <= known.from_n
                and known.to_n <= dropped.to_n
            ]
            for known in within:
                dropped.count += known.count
                self._untold.remove(known)
        self._untold.append(dropped)
