"""The configured logs of records: each takes records from the recorder and writes them in a thread of its own.

A bounded queue separates the event loop from the disk; records that find no room in it are counted and reported.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import trio

from trouter._bell import Bell
from trouter._bugs import BUGS
from trouter.config import ConfigurationError, Problem, RecordLogEntity
from trouter.config.entities import DROP_NEWEST
from trouter.net.hub import Hub
from trouter.records import Alarm
from trouter.records.anchors import HEAD_KIND
from trouter.records.segments import line_of
from trouter.records.stream import RecordQueue, Taken
from trouter.records.writer import Bounds, Busy, Now, SegmentWriter, latest_boot
from trouter.wire.types import ULong

from .clocks import mono_us, now_us
from .publisher import Publisher, message_of
from .recorder import Recorder

#: Records that come within this time are written together.
LINGER_S: Final = 0.02
#: Interval of the writer's periodic work when no records come.
TICK_S: Final = 1.0
#: Time for the last records; after that the router ends without them.
CLOSE_S: Final = 5.0
_SECOND_US: Final = 1_000_000
_DAY_US: Final = 86_400 * _SECOND_US

log = logging.getLogger("trouter.MAIN")


class RecordLog:
    """One log of records."""

    def __init__(self, entity: RecordLogEntity, writer: SegmentWriter, recorder: Recorder, hub: Hub) -> None:
        """Write the records that ``entity`` wants with ``writer``, which is open."""
        self._writer = writer
        self._recorder = recorder
        self._bell = Bell()
        self._stream = RecordQueue(self._bell.ring)
        self._publisher = Publisher(hub)
        self._hub = hub
        self._running = trio.CancelScope()
        self._thread = trio.CapacityLimiter(1)
        self.configure(entity)

    def configure(self, entity: RecordLogEntity) -> None:
        """Apply the attributes of ``entity`` from now on."""
        self.entity = entity
        self._writer.bounds = bounds_of(entity)
        for stream in (self._stream, self._publisher.stream):
            stream.kinds, stream.tenants, stream.except_tenants = entity.kinds, entity.tenants, entity.except_tenants
        self._publisher.address = entity.address or ""

    @property
    def lost(self) -> int:
        """Records that the disk or the queue had no room for."""
        return self._writer.dropped

    def stop(self) -> None:
        """End ``run``, which writes what is left."""
        self._running.cancel()

    def discard(self) -> None:
        """Close a log that never ran."""
        self._writer.close(now())

    def begin_recording(self) -> None:
        """Take records from now on, first what the writer saw when it opened the folder."""
        self._recorder.add(self._stream)
        self._recorder.add(self._publisher)
        self._emit_alarms()

    async def run(self) -> None:
        """Write until ``stop`` or cancellation, then what is left."""
        try:
            with self._running:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._publisher.run)
                    await self._write_for_ever()
        finally:
            self._recorder.remove(self._stream)
            self._recorder.remove(self._publisher)
            with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_S) as closing:
                taken = self._stream.take_records()
                await self._in_thread(self._close, taken)
            if closing.cancelled_caught:
                log.error("the router stopped before the last records were written into %s", self._writer.folder)

    async def _write_for_ever(self) -> None:
        while True:
            with trio.move_on_after(TICK_S):
                await self._bell.wait()
                await trio.sleep(LINGER_S)
            taken = self._stream.take_records()
            await self._in_thread(self._write, taken)
            self._emit_alarms()
            self._send_heads()

    def _emit_alarms(self) -> None:
        while self._writer.news:
            self._recorder.alarm(self._writer.news.popleft())

    def _send_heads(self) -> None:
        """Send the heads of segments to the address for them, pre-settled."""
        heads, address = self._writer.heads, self.entity.anchor_address
        if heads and address:
            self._hub.update_clock()
            while heads:
                head = line_of(heads.popleft()).rstrip()
                self._hub.router.inside.send_message(address, message_of(HEAD_KIND, head))
            self._hub.flush()
        heads.clear()

    async def _in_thread(self, work: Callable[[Taken], None], taken: Taken) -> None:
        """Do ``work`` in this log's only thread; on cancellation it continues without the caller."""
        await trio.to_thread.run_sync(work, taken, abandon_on_cancel=True, limiter=self._thread)

    def _write(self, taken: Taken) -> None:
        moment = now()
        self._writer.write(taken, moment)
        self._writer.tick(moment)

    def _close(self, taken: Taken) -> None:
        self._writer.write(taken, now())
        self._writer.close(now())


class RecordLogs:
    """All logs of a router, by their folders."""

    def __init__(self, router_id: str, recorder: Recorder, hub: Hub) -> None:
        self.by_folder: dict[str, RecordLog] = {}
        self._router_id = router_id
        self._recorder = recorder
        self._hub = hub
        self._nursery: trio.Nursery | None = None

    def run_in(self, nursery: trio.Nursery) -> None:
        """Set the nursery for the logs' tasks."""
        self._nursery = nursery

    def status(self, entity: RecordLogEntity) -> dict[str, object]:
        """Return the observed attributes of a log in service."""
        found = self.by_folder.get(folder_of(entity))
        return {} if found is None else {"recordsLost": ULong(found.lost)}

    @property
    def interval_s(self) -> int | None:
        """Seconds between records of a link's counts; None if no log wants them."""
        wanting = (
            each.entity.interval_seconds
            for each in self.by_folder.values()
            if each.entity.kinds is None or "delivery.interval" in each.entity.kinds
        )
        return min(wanting, default=None)

    @property
    def latency_addresses(self) -> int:
        """Number of addresses whose latencies are to be recorded."""
        wanting = (
            each.entity.latency_addresses
            for each in self.by_folder.values()
            if each.entity.kinds is None or "latency.sketch" in each.entity.kinds
        )
        return max(wanting, default=0)

    async def prepare(self, entities: Iterable[RecordLogEntity]) -> PendingRecordLogs:
        """Open the new logs among ``entities``; ConfigurationError if one cannot be opened."""
        wanted = {folder_of(entity): entity for entity in entities}
        pending = PendingRecordLogs(self, wanted)
        problems = []
        # Two logs are two streams: each start number is used once, so that both can be read as one set.
        latest = await trio.to_thread.run_sync(latest_boot, [Path(folder) for folder in wanted], self._router_id, now())
        for folder, entity in wanted.items():
            if folder in self.by_folder:
                continue
            writer = SegmentWriter(Path(folder), self._router_id, bounds_of(entity))
            try:
                await trio.to_thread.run_sync(writer.open, now(), latest)
                latest = writer.boot
            except (OSError, ValueError, Busy) as error:
                why = getattr(error, "strerror", None) or str(error)
                problems.append(
                    Problem(entity.place, f"records cannot be kept in {entity.dir!r}: {why}", "recordLog", "dir")
                )
            else:
                pending.fresh[folder] = RecordLog(entity, writer, self._recorder, self._hub)
        if problems:
            pending.drop()
            raise ConfigurationError(problems)
        return pending

    def replace_logs(self, wanted: dict[str, RecordLogEntity], fresh: dict[str, RecordLog]) -> None:
        """Start, reconfigure and stop logs, so that they are those in ``wanted``."""
        assert self._nursery is not None  # noqa: S101 - nothing is applied before
        for folder in list(self.by_folder):
            if folder not in wanted:
                self.by_folder.pop(folder).stop()
        for folder, entity in wanted.items():
            if folder in fresh:
                self.by_folder[folder] = fresh[folder]
                fresh[folder].begin_recording()
                self._nursery.start_soon(self._run, fresh[folder])
            elif self.by_folder[folder].entity != entity:
                self.by_folder[folder].configure(entity)

    async def _run(self, each: RecordLog) -> None:
        """Run one log; if it fails by a bug, raise an alarm and let the router go on."""
        try:
            await each.run()
        except Exception as error:  # noqa: BLE001 - it is reported
            BUGS.report(f"internal error: the router no longer writes records into {each.entity.dir}", error)
            subject = each.entity.dir
            self._recorder.alarm(Alarm(name="records", severity="critical", subject=subject, state="raised"))


class PendingRecordLogs:
    """Logs that are open and ready to run."""

    def __init__(self, logs: RecordLogs, wanted: dict[str, RecordLogEntity]) -> None:
        self.fresh: dict[str, RecordLog] = {}
        self._logs = logs
        self._wanted = wanted

    def apply(self) -> None:
        self._logs.replace_logs(self._wanted, self.fresh)

    def drop(self) -> None:
        for each in self.fresh.values():
            each.discard()


def folder_of(entity: RecordLogEntity) -> str:
    """Return the real path of a log's folder, which identifies it."""
    return os.path.realpath(entity.dir)


def bounds_of(entity: RecordLogEntity) -> Bounds:
    """Return a log's attributes as bounds for the writer."""
    return Bounds(
        max_bytes=entity.max_bytes,
        min_free_bytes=entity.min_free_bytes,
        segment_bytes=entity.segment_bytes,
        segment_us=entity.segment_seconds * _SECOND_US,
        fsync_us=entity.fsync_seconds * _SECOND_US,
        keep_us=entity.keep_days * _DAY_US,
        keeps_oldest=entity.when_full == DROP_NEWEST,
        compress=entity.compression == "gzip",
    )


def now() -> Now:
    """Return the present moment by both clocks."""
    return Now(now_us(), mono_us())
