"""What can be wrong with a spool. What the disk says is an OSError."""

from __future__ import annotations

from pathlib import Path


class SpoolError(Exception):
    """Base of this module."""


class SpoolBusy(SpoolError):
    """Another process, or another part of this one, writes into the spool."""


class SpoolCorrupt(SpoolError):
    """A file of a spool is not as it was written."""

    def __init__(self, path: Path, offset: int, why: str) -> None:
        super().__init__(f"{path}, offset {offset}: {why}")
        self.path = path
        self.offset = offset
        self.why = why

    def __reduce__(self) -> tuple[type[SpoolCorrupt], tuple[Path, int, str]]:
        return type(self), (self.path, self.offset, self.why)


class SpoolGap(SpoolError):
    """Messages were asked for that the spool no longer keeps, or has not received yet."""


class SegmentMissing(SpoolError):
    """A file that should be there is not visible from here: a spool on another machine, or a folder not mounted."""


class SpoolReplaced(SpoolError):
    """The spool in a folder is another one than it was, or belongs to something else."""
