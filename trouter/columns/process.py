"""The columns of ``allocator``, ``logStats`` and ``finding``: `stat --memory` shows those with a head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from .column import Column, Form, Head, Merge

if TYPE_CHECKING:
    from trouter.config.point import Point
    from trouter.config.problems import Problem

LEVELS: Final = ("trace", "debug", "info", "notice", "warning", "error", "critical")


class MemoryPool(NamedTuple):
    """The objects of one type. Nothing is pooled here: all of them are in use."""

    name: str
    size_bytes: int
    objects: int
    #: The objects that a thread of Qpid Dispatch takes at once, and those that it keeps.
    batch: int
    thread_max: int


class ModuleCounts(NamedTuple):
    """The number of log events of one module, by level."""

    module: str
    by_level: Mapping[str, int]


def _pooled(
    name: str,
    text: str,
    read: Callable[[MemoryPool], int],
    *,
    unit: str = "objects",
    head: Head | None = None,
    graph: bool = True,
    merge: Merge = Merge.SUM,
) -> Column[None, MemoryPool]:
    """Return a column with a number of a pool."""
    return Column(name, int, text, lambda _, pool: read(pool), unit=unit, head=head, graph=graph, merge=merge)


def _nothing(_: MemoryPool) -> int:
    """Return the number of what only pools have."""
    return 0


ALLOCATOR: Final[tuple[Column[None, MemoryPool], ...]] = (
    Column("typeName", str, "Type of the objects.", lambda _, pool: pool.name),
    _pooled(
        "typeSize",
        "Size of an object, in bytes.",
        lambda pool: pool.size_bytes,
        unit="bytes",
        head=Head("size", Form.COMMAS, needs=False),
        graph=False,
        merge=Merge.FIRST,
    ),
    _pooled(
        "transferBatchSize",
        "Number of objects moved between pools at once.",
        lambda pool: pool.batch,
        head=Head("batch", needs=False),
        graph=False,
        merge=Merge.FIRST,
    ),
    _pooled(
        "localFreeListMax",
        "Largest number of free objects that a thread keeps.",
        lambda pool: pool.thread_max,
        head=Head("thread-max", Form.COMMAS, needs=False),
        merge=Merge.FIRST,
    ),
    _pooled("globalFreeListMax", "Largest number of free objects that the process keeps.", _nothing),
    _pooled(
        "totalAllocFromHeap",
        "Number of objects allocated.",
        lambda pool: pool.objects,
        head=Head("total", Form.COMMAS, needs=False),
    ),
    _pooled("totalFreeToHeap", "Number of objects freed.", _nothing),
    _pooled(
        "heldByThreads",
        "Number of objects in use.",
        lambda pool: pool.objects,
        head=Head("in-threads", Form.COMMAS, needs=False),
    ),
    _pooled(
        "batchesRebalancedToThreads",
        "Number of batches moved to threads.",
        _nothing,
        unit="batches",
        head=Head("rebal-in", Form.COMMAS, needs=False),
    ),
    _pooled(
        "batchesRebalancedToGlobal",
        "Number of batches moved from threads.",
        _nothing,
        unit="batches",
        head=Head("rebal-out", Form.COMMAS, needs=False),
    ),
)


def _level(level: str) -> Column[None, ModuleCounts]:
    """Return the column with the number of events of one level."""
    return Column(
        f"{level}Count",
        int,
        f"Number of events of the level {level}.",
        lambda _, counts: counts.by_level.get(level, 0),
        unit="events",
        graph=True,
    )


LOG_STATS: Final[tuple[Column[None, ModuleCounts], ...]] = (
    *map(_level, LEVELS),
    Column("name", str, "", lambda _, counts: counts.module),
)


def _finding(name: str, text: str, field: str, values: tuple[str, ...] = ()) -> Column[Mapping[str, Point], Problem]:
    """Return a column with a text of a finding; null for an empty one."""
    return Column(name, str, text, lambda _, finding: getattr(finding, field) or None, values=values, optional=True)


#: The owner of the findings is the table of strictness.
FINDING: Final[tuple[Column[Mapping[str, Point], Problem], ...]] = (
    Column(
        "severity",
        str,
        "Severity of the finding.",
        lambda _, finding: str(finding.severity),
        values=("problem", "unsafe", "warning", "accepted"),
    ),
    _finding("entity", "Identity of the entity concerned, if it is one entity.", "entity"),
    _finding("section", "Section of the configuration file.", "section"),
    _finding("attribute", "Attribute concerned, if it is one attribute.", "key"),
    _finding("message", "Consequence: what is not served, or who is admitted.", "message"),
    _finding("cure", "What to write instead.", "suggestion"),
    Column(
        "place",
        str,
        "Place in the configuration: file, line and column.",
        lambda _, finding: str(finding.place),
    ),
    _finding("point", "Row of the table of the migration page, if there is one.", "point"),
    Column(
        "page",
        str,
        "Page of the manual about it.",
        lambda points, finding: f"docs/{point.page}" if (point := points.get(finding.point)) else None,
        optional=True,
    ),
    _finding("reason", "Reason for which the operator accepts the finding, if the file gives one.", "reason"),
)
