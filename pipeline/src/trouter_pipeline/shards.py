"""The shards of a query, which are spools, and its position in each: offsets.

An offset maps the uuid of every spool to the first sequence that is *not* included. The uuid is the key, so that a
replaced spool is not taken for the one that was read before.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias, Union

from trouter_pipeline.flight.access import Access, is_served
from trouter_pipeline.spool import SegmentMissing, SpoolGap, SpoolReader, SpoolReplaced, spools_in
from trouter_pipeline.spool.cursors import DEFAULT

if TYPE_CHECKING:
    from trouter_pipeline.flight.client import ServedSpool

log = logging.getLogger(__name__)

Offset = dict[str, int]
OpenSpool: TypeAlias = Union[SpoolReader, "ServedSpool"]


def open_spools(folders: Iterable[str], cursor: str = DEFAULT) -> list[SpoolReader]:
    """Return a reader for each spool in folders, for the consumer of a cursor.

    SegmentMissing for a folder without a spool, SpoolError, OSError.
    """
    shards = []
    for folder in folders:
        if not (spools := spools_in(folder)):
            raise SegmentMissing(f"no spool is visible in {folder}. Is the folder on this machine, or mounted?")
        shards += [SpoolReader(spool, cursor) for spool in spools]
    return shards


def open_shards(places: Iterable[str], cursor: str = DEFAULT, access: Access | None = None) -> list[OpenSpool]:
    """Return the same for folders and for addresses of servers; raises as ``open_spools``."""
    shards: list[OpenSpool] = []
    for place in places:
        if is_served(place):
            from trouter_pipeline.flight.client import open_served  # noqa: PLC0415  # Flight, for those who use it

            shards += open_served(place, access or Access(), cursor)
        else:
            shards += open_spools([place], cursor)
    return shards


def blocks_of(shard: OpenSpool, start: int, end: int, access: Access, block_bytes: int) -> Iterator[bytes]:
    """Return the frames of messages ``start`` to ``end`` - 1 in blocks; SpoolError, OSError."""
    if isinstance(shard, SpoolReader):
        return shard.blocks(start, end, block_bytes=block_bytes)
    from trouter_pipeline.flight.client import read_granted  # noqa: PLC0415  # Flight, for those who use it

    return read_granted(shard.folder, shard.granted(start, end), start, end, access)


def let_go(shards: Iterable[OpenSpool], position: Mapping[str, int]) -> int:
    """Move the cursors to a position that a query has settled; return the number of messages behind it.

    Spark itself moves them with the batch that follows. SpoolError, OSError.
    """
    left = 0
    for shard in shards:
        durable = shard.durable()
        at = position.get(shard.uuid)
        if at is not None:
            shard.consumed(min(at, durable))
        left += max(0, durable - (shard.begin if at is None else at))
    return left


def gap(shard: OpenSpool, since: int, first: int) -> SpoolGap:
    """Return the error for messages ``since`` to ``first`` - 1 of a spool, which are to be read."""
    return SpoolGap(
        f"spool {shard.folder} begins with message {shard.first}: messages {since} to {first - 1} are gone, and were "
        "not read. A new cursor begins with what is left: `trouter pipeline cursors DIR --add NEW`, then --cursor NEW, "
        "and for land another --name"
    )


class Shards:
    """The open shards of a stream, by uuid."""

    def __init__(
        self, folders: Iterable[str], *, fail_on_loss: bool, cursor: str = DEFAULT, access: Access | None = None
    ) -> None:
        self._folders = tuple(folders)
        self._cursor = cursor
        self._access = access
        self._fail_on_loss = fail_on_loss
        self._open: dict[str, OpenSpool] = {}
        self._reported: set[str] = set()
        self.look()

    def look(self) -> None:
        """Open new spools; they are read from the position of the cursor on."""
        for reader in open_shards(self._folders, self._cursor, self._access):
            if reader.uuid in self._open:
                reader.close()
            else:
                self._open[reader.uuid] = reader

    def first(self) -> Offset:
        """Return the start of a new query: see `SpoolReader.begin`. NoCursor."""
        return {uuid: reader.begin for uuid, reader in sorted(self._open.items())}

    def durable(self) -> Offset:
        """Return the end of what is durable, without access to the disk."""
        return {uuid: reader.durable() for uuid, reader in sorted(self._open.items())}

    def latest(self, start: Mapping[str, int], target: Mapping[str, int], limit: int | None) -> Offset:
        """Return the end of a batch from ``start``: at most ``target``, and ``limit`` rows shared out evenly."""
        begin = {uuid: start[uuid] for uuid in self._open if uuid in start}
        for uuid, reader in self._open.items():
            if uuid not in begin:
                begin[uuid] = reader.begin
        waiting = {uuid: max(0, target.get(uuid, 0) - at) for uuid, at in begin.items()}
        left = sum(waiting.values()) if limit is None else limit
        end: Offset = {}
        for done, uuid in enumerate(sorted(waiting, key=waiting.__getitem__)):
            share = min(waiting[uuid], left // (len(waiting) - done))
            end[uuid] = begin[uuid] + share
            left -= share
        return dict(sorted(end.items()))

    def ranges(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[tuple[OpenSpool, int, int]]:
        """Return (spool, first sequence, end) for each spool that has messages between two offsets.

        SpoolReplaced, SpoolGap for lost messages; they are only logged if losses are tolerated.
        """
        found = []
        for uuid, to in end.items():
            reader = self._open.get(uuid)
            since = start.get(uuid, 0)
            if reader is None:
                self._lose(SpoolReplaced(self._gone(uuid, since, to)))
                continue
            first = reader.first
            since = start.get(uuid, reader.begin)
            if since < first and since < to:
                self._lose(gap(reader, since, min(first, to)))
                since = min(first, to)
            if since < to:
                found.append((reader, since, to))
        return found

    def _gone(self, uuid: str, since: int, to: int) -> str:
        there = ", ".join(f"{each.uuid} in {each.folder}" for each in self._open.values())
        return (
            f"spool {uuid}, which was read up to message {since} of {to}, is not in {', '.join(self._folders)} "
            f"any more (there is {there}): the spool was replaced, or the checkpoint is another query's"
        )

    def check(self, offset: Mapping[str, int]) -> Offset:
        """Return ``offset`` as far as reading can continue from it; SpoolReplaced, SpoolGap."""
        kept = {}
        for uuid, at in offset.items():
            reader = self._open.get(uuid)
            if reader is None:
                self._lose(SpoolReplaced(self._gone(uuid, at, at)))
            elif at > (durable := reader.durable()):
                self._lose(
                    SpoolGap(f"spool {reader.folder} ends before message {durable}, and was read up to {at} before")
                )
                kept[uuid] = durable
            else:
                kept[uuid] = at
        return kept

    def _lose(self, loss: SpoolGap | SpoolReplaced) -> None:
        if self._fail_on_loss:
            raise type(loss)(f"{loss}. failOnDataLoss=false reads on")
        if str(loss) not in self._reported:
            self._reported.add(str(loss))
            log.error("messages are missing, and reading goes on because of failOnDataLoss=false: %s", loss)

    def consumed(self, end: Mapping[str, int]) -> None:
        """Move the cursor of each spool to ``end``; NoCursor, OSError."""
        for uuid, upto in end.items():
            if (reader := self._open.get(uuid)) is not None and upto <= reader.durable():
                reader.consumed(upto)

    def close(self) -> None:
        for reader in self._open.values():
            reader.close()
        self._open.clear()
