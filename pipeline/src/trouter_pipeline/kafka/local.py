"""Forwarding on one machine without Spark: a writer for each spool, in this process."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

from trouter.records.disk import FileHeld, lock_file
from trouter_pipeline.arrow import Origin, batches
from trouter_pipeline.consuming import open_source, options_for
from trouter_pipeline.flight.access import Access
from trouter_pipeline.kafka.failures import NotForwarded
from trouter_pipeline.kafka.records import COLUMNS, records_of
from trouter_pipeline.kafka.settings import SOURCE, Settings
from trouter_pipeline.kafka.tail import placed, tail_of
from trouter_pipeline.kafka.writer import Counts, Writer
from trouter_pipeline.shards import OpenSpool, blocks_of, gap
from trouter_pipeline.spool import SpoolReader
from trouter_pipeline.spool.cursors import DEFAULT

#: The lock in a spool's folder that its forwarder holds; that of a named cursor has the name before it.
LOCK: Final = "forward.lock"
_BLOCK_BYTES: Final = 1 << 18


@dataclass(slots=True)
class Summary:
    """The messages forwarded since the start, by source, those that the topic had already, and those that wait."""

    sent: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    left: int = 0

    def add(self, source: str, counts: Counts) -> None:
        self.sent[source] += counts.sent
        self.known[source] += counts.known


@contextmanager
def held(shards: Sequence[OpenSpool]) -> Iterator[None]:
    """Lock the spools for this forwarder, those in folders; NotForwarded if another one has them."""
    with ExitStack() as stack:
        for shard in shards:
            if not isinstance(shard, SpoolReader):
                continue
            name = LOCK if shard.cursor == DEFAULT else f"{shard.cursor}.{LOCK}"
            try:
                stack.callback(os.close, lock_file(shard.folder / name))
            except FileHeld as error:
                raise NotForwarded(
                    f"process {error.holder} forwards spool {shard.folder}: only one may, so that its order is kept"
                ) from None
        yield


def partitions_of(settings: Settings, sources: Sequence[str], given: Mapping[str, int]) -> dict[str, int]:
    """Return the partition of each source, none if a field chooses it; NotForwarded if there is no such topic."""
    with tail_of(settings, committed=False) as tail:
        if settings.partition_by == SOURCE:
            return placed(settings, tail, set(sources), dict(given))
        tail.partitions()
        return {}


def run(
    settings: Settings,
    folders: Sequence[str],
    given: Mapping[str, int],
    *,
    cursor: str = DEFAULT,
    source: Mapping[str, str] | None = None,
    every_s: int | None = None,
    max_rows: int = 10_000,
    max_message: int,
    wants_to_end: Callable[[], bool] = bool,
    progress: Callable[[str], None] = lambda _: None,
) -> Summary:
    """Forward all that is there, or with ``every_s`` until ``wants_to_end``.

    ``source`` are options of the source for servers of spools. NotForwarded, BadOption, SpoolError, OSError.
    """
    summary = Summary()
    with ExitStack() as stack:
        shards, access = stack.enter_context(open_source(options_for(folders, cursor, source or {})))
        stack.enter_context(held(shards))
        partitions = partitions_of(settings, [shard.address for shard in shards], given)
        lines = [_Line(shard, settings, partitions.get(shard.address), max_message, access) for shard in shards]
        for line in lines:
            stack.callback(line.close)
        while not wants_to_end():
            waiting = [line for line in lines if line.left()]
            for line in waiting:
                progress(f"{line.source}: {line.left():,} messages wait")
                summary.add(line.source, line.forward(max_rows))
            if not waiting:
                if every_s is None:
                    break
                time.sleep(every_s)
        summary.left = sum(line.left() for line in lines)
    return summary


class _Line:
    """A spool, and what it writes to. The writer is made for the first message.

    SpoolGap if messages are gone that the cursor has not passed.
    """

    def __init__(
        self, shard: OpenSpool, settings: Settings, partition: int | None, max_message: int, access: Access
    ) -> None:
        self.source = shard.address
        self._access = access
        self._shard = shard
        self._settings = settings
        self._partition = partition
        self._max_message = max_message
        self._writer: Writer | None = None
        #: The first sequence that no finished batch has.
        self._position = shard.position
        if self._position < (first := shard.first):
            raise gap(shard, self._position, first)

    def left(self) -> int:
        """Return the number of messages that wait."""
        return max(0, self._shard.durable() - self._position)

    def forward(self, most: int) -> Counts:
        """Forward the next messages, and let the spool delete them; return their counts."""
        start, end = self._position, min(self._shard.durable(), self._position + most)
        if self._writer is None:
            self._writer = Writer(self._settings, self._shard.uuid, start, self._partition)
        origin = Origin(self._shard.uuid, self._shard.shard, self.source)
        blocks = blocks_of(self._shard, start, end, self._access, _BLOCK_BYTES)
        for batch, _ in batches(blocks, origin, start, end, self._max_message):
            self._writer.send(records_of(batch.select(list(COLUMNS)).to_pylist(), self._settings))
        counts = self._writer.finish()
        self._shard.consumed(end)
        self._position = end
        return counts

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
