"""Messages kept on disk until a consumer has them: a receiver writes and settles durable messages, readers follow.

Nothing here imports Spark. ``Spool`` is the writing side; ``SpoolReader`` reads, also in another process. ``receive``
in `trouter_pipeline.spool.receiver` fills a spool from an address. `docs/spool.md` is the manual.
"""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)

from trouter_pipeline.spool.errors import (  # noqa: E402 - the twin is chosen first
    NoCursor,
    SegmentMissing,
    SpoolBusy,
    SpoolCorrupt,
    SpoolError,
    SpoolGap,
    SpoolReplaced,
)
from trouter_pipeline.spool.frames import Frame, parse_frames  # noqa: E402
from trouter_pipeline.spool.reader import SpoolReader, spools_in  # noqa: E402
from trouter_pipeline.spool.writer import Spool  # noqa: E402

__all__ = [
    "Frame",
    "NoCursor",
    "SegmentMissing",
    "Spool",
    "SpoolBusy",
    "SpoolCorrupt",
    "SpoolError",
    "SpoolGap",
    "SpoolReader",
    "SpoolReplaced",
    "parse_frames",
    "spools_in",
]
