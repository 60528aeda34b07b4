"""The entity of folders that hold records of the router."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trouter.columns.column import Merge
from trouter.config import texts
from trouter.config.entities.base import Entity, entity
from trouter.config.schema import choice, counter, integer, path, string

DELETE_OLDEST: Final = "deleteOldest"
DROP_NEWEST: Final = "dropNewest"
#: The least total size of the files of one router.
LEAST_BYTES: Final = 1 << 20
_LARGEST: Final = 2**53


@entity(
    "recordLog",
    "Writes records of what the router does, for audit and for metering, into the files of one folder.",
    "recordLog",
    operations=("CREATE", "READ", "UPDATE", "DELETE"),
    inherited=(),
    extra=True,
    parted=True,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLogEntity(Entity):
    """A folder of records."""

    dir: str = path(
        "The folder. The router creates it; routers with different ids may share it.",
        parse=texts.folder,
        required=True,
        update=False,
    )
    kinds: frozenset[str] | None = string(
        "The kinds of records kept, a list of kinds such as `sasl.outcome`, or `audit` for all kinds of "
        "evidence, `telemetry` for all kinds of measurements, or `all`.",
        default_doc="`all`",
        parse=texts.record_kinds,
    )
    tenants: frozenset[str] | None = string(
        "Keep only the records of these tenants or vhosts, separated by commas, and none without a tenant. With "
        "a log of its own, a tenant's records can be kept for another time.",
        default_doc="all",
        parse=texts.names,
    )
    except_tenants: frozenset[str] = string(
        "Do not keep the records of these tenants or vhosts.", frozenset(), parse=texts.names
    )
    interval_seconds: int = integer(
        "How often each link is recorded with its counts. If several logs differ, the shortest interval counts.",
        60,
        low=1,
        high=86400,
    )
    latency_addresses: int = integer(
        "The number of addresses for which the router records, after each interval, how long deliveries took. "
        "Deliveries to other addresses, and on anonymous links, are recorded by class of address. If several "
        "logs differ, the greatest number counts.",
        1000,
        high=100_000,
    )
    max_bytes: int = integer(
        "The largest total size of the files of this router, in bytes. Each of several workers has its share, of at "
        "least 1 MiB.",
        2 << 30,
        low=LEAST_BYTES,
        high=_LARGEST,
        merge=Merge.SUM,
    )
    min_free_bytes: int = integer(
        "The space that must stay free in the file system, in bytes.", 64 << 20, high=_LARGEST
    )
    when_full: str = choice(
        "If there is no room, the router deletes the oldest files, or drops new records, so that no flood can "
        "push out evidence. It records either, and `dropNewest` raises an alarm.",
        DELETE_OLDEST,
        values=(DELETE_OLDEST, DROP_NEWEST),
    )
    keep_days: int = integer("Days after which the router deletes files; 0 keeps them.", 0, high=36500)
    segment_bytes: int = integer(
        "When a file reaches this size, in bytes, the router completes it and begins the next.", 64 << 20, low=64 << 10
    )
    compression: str = choice(
        "Whether the router compresses complete files, to about a fifth. The file that it is writing is never "
        "compressed.",
        "none",
        values=("none", "gzip"),
    )
    segment_seconds: int = integer(
        "When the first record of a file is this old, the router completes the file and begins the next.",
        60,
        low=1,
        high=86400,
    )
    fsync_seconds: int = integer(
        "How often the router syncs the files to the disk, so that they survive a failure of power; 0 after "
        "each write. Records that are written survive a crash of the router in any case.",
        5,
        high=3600,
    )
    address: str | None = string("The router also sends each record as a message to this address.")
    anchor_address: str | None = string(
        "The router sends the head of each complete or sealed file as a message to this address: its name, the number "
        "of its last record, and a hash, for `trouter records check --anchors` on another machine."
    )
    records_lost: None = counter("Records lost since the start, because the disk or the queue was full.")

    def _default_name(self) -> str:
        return self.dir
