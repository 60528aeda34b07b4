"""Where records of what the router does are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trouter.config import texts
from trouter.config.entities.base import Entity, entity
from trouter.config.schema import choice, counter, integer, path, string

DELETE_OLDEST: Final = "deleteOldest"
DROP_NEWEST: Final = "dropNewest"
_LARGEST: Final = 2**53


@entity(
    "recordLog",
    "Keeps records of what the router does, for audit and for measuring, in the files of one folder.",
    "recordLog",
    operations=("CREATE", "READ", "UPDATE", "DELETE"),
    inherited=(),
    extra=True,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLogEntity(Entity):
    """Records in one folder."""

    dir: str = path(
        "The folder. It is made if need be; routers of different ids may share it.",
        parse=texts.folder,
        required=True,
        update=False,
    )
    kinds: frozenset[str] | None = string(
        "The kinds of records kept, a list of kinds such as `sasl.outcome`, or `audit` for all that is evidence, "
        "`telemetry` for all that measures, `all`.",
        default_doc="`all`",
        parse=texts.record_kinds,
    )
    tenants: frozenset[str] | None = string(
        "Only records about these are kept: tenants or vhosts, separated by commas. Records that belong to none are "
        "not. A log of their own lets their records be kept for another time.",
        default_doc="all",
        parse=texts.names,
    )
    except_tenants: frozenset[str] = string("Records about these are not kept.", frozenset(), parse=texts.names)
    interval_seconds: int = integer(
        "How often each link tells what came and went on it. Where several logs want to know, the shortest holds.",
        60,
        low=1,
        high=86400,
    )
    latency_addresses: int = integer(
        "Addresses of which a record tells, after each interval, how long deliveries took. What is sent to others, or "
        "without an address of the link, is told of by class of address. The most that a log wants counts.",
        1000,
        high=100_000,
    )
    max_bytes: int = integer("What all files of this router may take in octets.", 2 << 30, low=1 << 20, high=_LARGEST)
    min_free_bytes: int = integer("What the file system must have left for others, in octets.", 64 << 20, high=_LARGEST)
    when_full: str = choice(
        "Where there is no room: delete the oldest files, or drop what is new, which keeps evidence from being pushed "
        "out. Either is recorded and `dropNewest` raises an alarm.",
        DELETE_OLDEST,
        values=(DELETE_OLDEST, DROP_NEWEST),
    )
    keep_days: int = integer("Files that are older are deleted; 0 keeps them.", 0, high=36500)
    segment_bytes: int = integer(
        "A file of this size, in octets, is completed and the next begun.", 64 << 20, low=64 << 10
    )
    compression: str = choice(
        "What is done with files that are complete: nothing, or they are compressed, to about a fifth. What is being "
        "written is plain in any case.",
        "none",
        values=("none", "gzip"),
    )
    segment_seconds: int = integer("So is one whose first record is this old.", 60, low=1, high=86400)
    fsync_seconds: int = integer(
        "How often the disk is told to hold on to what was written, for a failure of power; 0 after each write. What "
        "was written outlives the router's own end in any case.",
        5,
        high=3600,
    )
    address: str | None = string("Records are sent to this address too, a message each, for its receivers.")
    records_lost: None = counter("Records that the disk or the queue had no room for, since the start.")

    def _default_name(self) -> str:
        return self.dir
