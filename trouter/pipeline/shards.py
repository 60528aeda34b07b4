"""The spools that a query reads, its shards, and how far it is in each: offsets.

An offset is a dict from the uuid of a spool to the first sequence that is *not* included, for every spool. The uuid is
the key, so a spool that was replaced is never taken for the one that was read before.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from trouter.spool import SegmentMissing, SpoolGap, SpoolReader, SpoolReplaced, spools_in

log = logging.getLogger(__name__)

Offset = dict[str, int]


def open_shards(folders: Iterable[str]) -> list[SpoolReader]:
    """A reader for each spool in the folders; SegmentMissing for a folder without one, SpoolError, OSError."""
    shards = []
    for folder in folders:
        found = spools_in(folder)
        if not found:
            raise SegmentMissing(f"no spool is visible in {folder}. Is the folder on this machine, or mounted?")
        shards += [SpoolReader(each) for each in found]
    return shards


class Shards:
    """The open shards of a stream, by uuid."""

    def __init__(self, folders: Iterable[str], *, fail_on_loss: bool) -> None:
        self._folders = tuple(folders)
        self._fail_on_loss = fail_on_loss
        self._open: dict[str, SpoolReader] = {}
        self._told: set[str] = set()
        self.look()

    def look(self) -> None:
        """See which spools there are; those that are new are read from their first message on."""
        for reader in open_shards(self._folders):
            if reader.uuid in self._open:
                reader.close()
            else:
                self._open[reader.uuid] = reader

    def first(self) -> Offset:
        """Where a new query starts: with the oldest message that each spool has."""
        return {uuid: reader.first for uuid, reader in sorted(self._open.items())}

    def durable(self) -> Offset:
        """The end of what is safe; costs no look at the disk."""
        return {uuid: reader.durable() for uuid, reader in sorted(self._open.items())}

    def latest(self, start: Mapping[str, int], target: Mapping[str, int], limit: int | None) -> Offset:
        """How far a batch from ``start`` on goes: to ``target``, and to at most ``limit`` rows, shared out evenly."""
        begin = {uuid: start[uuid] for uuid in self._open if uuid in start}
        for uuid, reader in self._open.items():
            if uuid not in begin:
                begin[uuid] = reader.first
        waiting = {uuid: max(0, target.get(uuid, 0) - at) for uuid, at in begin.items()}
        left = sum(waiting.values()) if limit is None else limit
        end: Offset = {}
        for done, uuid in enumerate(sorted(waiting, key=waiting.__getitem__)):
            share = min(waiting[uuid], left // (len(waiting) - done))
            end[uuid] = begin[uuid] + share
            left -= share
        return dict(sorted(end.items()))

    def ranges(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[tuple[SpoolReader, int, int]]:
        """What lies between two offsets: (spool, first sequence, behind the last) of each that has anything there.

        SpoolReplaced, SpoolGap for what is gone; or, if loss is no failure, what was lost is told in the log.
        """
        found = []
        for uuid, to in end.items():
            reader = self._open.get(uuid)
            since = start.get(uuid, 0)
            if reader is None:
                self._lose(SpoolReplaced(self._gone(uuid, since, to)))
                continue
            first = reader.first
            since = start.get(uuid, first)
            if since < first and since < to:
                self._lose(
                    SpoolGap(
                        f"spool {reader.folder} begins with message {first}: messages {since} to {min(first, to) - 1} "
                        "are gone, and were not read"
                    )
                )
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
        """``offset``, which Spark kept, as far as it can be read on from; SpoolReplaced, SpoolGap if that fails."""
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
        if str(loss) not in self._told:
            self._told.add(str(loss))
            log.error("messages are missing, and reading goes on because of failOnDataLoss=false: %s", loss)

    def consumed(self, end: Mapping[str, int]) -> None:
        """Let the spools delete what lies before ``end``; OSError."""
        for uuid, upto in end.items():
            if (reader := self._open.get(uuid)) is not None and upto <= reader.durable():
                reader.consumed(upto)

    def close(self) -> None:
        for reader in self._open.values():
            reader.close()
        self._open.clear()
