"""What a router has deleted, as the file of its key has it: the next start reports that, and believes no manifest."""

from __future__ import annotations

import msgspec

from trouter.records.holes import Hole
from trouter.records.segments import DeletedRun


class Deletion(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """One segment that is being deleted: its run of one, and the numbers that are missing with it."""

    run: DeletedRun
    hole: Hole


class Deletions(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """The holes and runs of deleted segments, and the segment that may be gone or not when the router is killed now."""

    holes: list[Hole] = []
    runs: list[DeletedRun] = []
    going: Deletion | None = None

    def last_seal(self) -> int:
        """Return the number of the last seal in a deleted segment, -1 if there is none."""
        return max((run.to_seal for run in self.runs if run.to_seal is not None), default=-1)
