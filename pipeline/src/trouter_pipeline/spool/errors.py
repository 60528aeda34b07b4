"""Errors of a spool. A failing disk raises OSError."""

from __future__ import annotations

from pathlib import Path


class SpoolError(Exception):
    """Base of the errors of this package."""


class SpoolBusy(SpoolError):
    """Another process, or another object of this one, writes into the spool."""


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
    """The requested messages were deleted, or have not come yet."""


class NoCursor(SpoolError):
    """The spool has no cursor of this name."""


class SegmentMissing(SpoolError):
    """A file of the spool is not visible here: the spool is on another machine, or the folder is not mounted."""


class SpoolReplaced(SpoolError):
    """The folder holds another spool than before, or that of another address or shard."""
