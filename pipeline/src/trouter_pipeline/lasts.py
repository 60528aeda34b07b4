"""The last message that a query has had of each spool, by which it knows a spool that was put back from a backup.

    CHECKPOINT/last-messages.json    uuid of a spool: sequence, arrival in microseconds since 1970

Such a spool gives the sequences behind the backup to other messages, which the query would take for those that it has.
Its cursor was put back, too, so the spool still has the message with that sequence, and it came at another time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from trouter.records.disk import place_file
from trouter_pipeline.flight.access import Access
from trouter_pipeline.shards import OpenSpool, blocks_of
from trouter_pipeline.spool import SegmentMissing, SpoolGap, SpoolReplaced
from trouter_pipeline.spool.frames import parse_frames

_NAME: Final = "last-messages.json"
_BLOCK_BYTES: Final = 1 << 18
_Lasts: TypeAlias = dict[str, tuple[int, int]]


def require_same(checkpoint: Path, shards: Iterable[OpenSpool], access: Access) -> None:
    """Raise SpoolReplaced if a spool has another message in the place of the last one that `note` saw; SpoolError."""
    known = _noted(checkpoint)
    for shard in shards:
        sequence, arrival_us = known.get(shard.uuid, (-1, 0))
        if _arrival(shard, sequence, access) not in {None, arrival_us}:
            raise SpoolReplaced(
                f"message {sequence} of spool {shard.folder} is another one than the query of {checkpoint} had: the "
                "folder was put back from a backup, or a copy of it was filled, and what came since would be left out. "
                "Move it away, let `trouter pipeline spool` begin a new one, and read the former one with a new "
                "checkpoint (of `land`: another --name), which brings what came before the backup once more"
            )


def note(checkpoint: Path, shards: Iterable[OpenSpool], position: Mapping[str, int], access: Access) -> None:
    """Keep the last message of each spool before ``position``; SpoolError, OSError.

    A loss of power may take it: then the next run looks for none.
    """
    found = _noted(checkpoint)
    for shard in shards:
        last = position.get(shard.uuid, 0) - 1
        if last != found.get(shard.uuid, (-1, 0))[0] and (arrival_us := _arrival(shard, last, access)) is not None:
            found[shard.uuid] = (last, arrival_us)
    place_file(checkpoint / _NAME, msgspec.json.encode(found), durable=False)


def _noted(checkpoint: Path) -> _Lasts:
    try:
        return msgspec.json.decode((checkpoint / _NAME).read_bytes(), type=_Lasts)
    except (FileNotFoundError, msgspec.DecodeError):
        return {}


def _arrival(shard: OpenSpool, sequence: int, access: Access) -> int | None:
    """Return when a message came; None if the spool does not have it (any more); SpoolError."""
    if not shard.first <= sequence < shard.durable():
        return None
    try:
        for block in blocks_of(shard, sequence, sequence + 1, access, _BLOCK_BYTES):
            return next(parse_frames(block)).ingest_us
    except (SpoolGap, SegmentMissing):  # it was deleted just now
        pass
    return None
