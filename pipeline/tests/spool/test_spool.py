"""A spool without failures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.tests.spool.support import fill, frames, holds, message
from trouter_pipeline.spool import (
    Frame,
    SegmentMissing,
    Spool,
    SpoolBusy,
    SpoolGap,
    SpoolReader,
    SpoolReplaced,
    spools_in,
)


def test_appended_messages_are_readable_after_a_sync_and_not_before(spool: Spool, folder: Path) -> None:
    reader = SpoolReader(folder)
    assert spool.append(b"one", format=7, tag=b"t", presettled=True, ingest_us=5) == 0
    assert spool.append(b"", ingest_us=1 << 50) == 1
    assert (reader.durable(), spool.durable, spool.next) == (0, 0, 2)
    with pytest.raises(SpoolGap, match="ends before message 0"):
        list(reader.blocks(0, 1))
    assert spool.sync() == 2
    assert (reader.durable(), reader.uuid, reader.address, reader.shard) == (2, spool.uuid, "orders", 0)
    assert frames(folder) == [Frame(0, 5, 7, True, b"t", b"one"), Frame(1, 1 << 50, 0, False, b"", b"")]


def test_a_sync_of_nothing_is_one(spool: Spool) -> None:
    assert spool.sync() == 0


@pytest.mark.parametrize("size", [8, 100, 1000])
@pytest.mark.parametrize("block_bytes", [1, 700, 1 << 20])
def test_any_range_comes_whole_and_across_segments(folder: Path, size: int, block_bytes: int) -> None:
    with Spool.open(folder, segment_bytes=2000) as spool:
        for _ in range(20):
            fill(spool, 3, size)
        assert len(list(folder.glob("*.spool"))) > 1
    for start, end in [(0, 60), (0, 1), (59, 60), (17, 43), (30, 30), (3, 6)]:
        found = frames(folder, start, end, block_bytes)
        assert [frame.message for frame in found] == [message(number, size) for number in range(start, end)]


def test_blocks_are_as_large_as_asked_for_or_one_frame(folder: Path) -> None:
    with Spool.open(folder) as spool:
        fill(spool, 50, 100)
        fill(spool, 1, 5000)
        fill(spool, 50, 100)
    *others, large = sorted(len(block) for block in SpoolReader(folder).blocks(0, 101, block_bytes=1000))
    assert max(others) <= 1000 < large


def test_a_reopened_spool_goes_on_at_its_end(folder: Path) -> None:
    with Spool.open(folder) as spool:
        fill(spool, 10)
        uuid = spool.uuid
    with Spool.open(folder) as spool:
        assert (spool.next, spool.durable, spool.uuid) == (10, 10, uuid)
        fill(spool, 10)
    holds(folder, 0, 20)


def test_the_second_opener_gets_the_process_that_holds_the_spool(spool: Spool, folder: Path) -> None:
    with pytest.raises(SpoolBusy, match=f"in use by process {os.getpid()}"):
        Spool.open(folder)
    code = f"from trouter_pipeline.spool import Spool; Spool.open({str(folder)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"SpoolBusy: spool {folder} is in use by process {os.getpid()}" in done.stderr
    spool.close()
    Spool.open(folder).close()


def test_a_spool_of_another_address_or_shard_is_not_written_into(spool: Spool, folder: Path) -> None:
    spool.close()
    with pytest.raises(SpoolReplaced, match="'orders', shard 0, not of 'events', shard 0"):
        Spool.open(folder, address="events")
    with pytest.raises(SpoolReplaced):
        Spool.open(folder, address="orders", shard=1)
    with Spool.open(folder) as reader:
        assert reader.address == "orders"


def test_a_folder_without_a_spool_is_not_an_empty_spool(tmp_path: Path) -> None:
    with pytest.raises(SegmentMissing, match="not visible here"):
        SpoolReader(tmp_path)


def test_a_segment_that_cannot_be_seen_is_an_error(folder: Path) -> None:
    with Spool.open(folder, segment_bytes=500) as spool:
        for _ in range(4):
            fill(spool, 5)
    segments = sorted(folder.glob("*.spool"))
    assert len(segments) == 4
    segments[1].unlink()
    with pytest.raises(SegmentMissing, match="message 5 is not visible here"):
        frames(folder)
    segments[3].unlink()
    with pytest.raises(SegmentMissing, match="message 15 is not visible here"):
        frames(folder, 10, 20)
    segments[0].unlink()
    with pytest.raises(SpoolGap, match="begins with message 10: message 3 is deleted"):
        frames(folder, 3, 4)


def test_consumed_segments_are_deleted_with_and_without_a_writer(folder: Path) -> None:
    with Spool.open(folder, segment_bytes=500) as spool:
        for _ in range(4):
            fill(spool, 5)
        reader = SpoolReader(folder)
        whole = spool.backlog_bytes
        reader.consumed(11)
        assert spool.consumed == 11
        assert 0 < spool.backlog_bytes <= whole
        assert spool.reap() == 2
        assert reader.first == 10
        reader.consumed(3)
        assert spool.consumed == 11
    reader.consumed(16)
    assert reader.first == 15
    with pytest.raises(ValueError, match="message 20"):
        reader.consumed(21)
    with Spool.open(folder) as spool:
        assert (spool.next, spool.consumed) == (20, 16)
    holds(folder, 15, 20)


def test_sequences_outlive_everything_they_numbered(folder: Path) -> None:
    with Spool.open(folder, segment_bytes=500) as spool:
        for _ in range(4):
            fill(spool, 5)
        SpoolReader(folder).consumed(20)
        spool.reap()
        assert spool.backlog_bytes == 0
    with Spool.open(folder) as spool:
        assert spool.next == 20
        fill(spool, 1)
    holds(folder, 20, 21)


def test_the_backlog_is_known_again_after_opening(folder: Path) -> None:
    with Spool.open(folder, backlog_bytes=400_000) as spool:
        for _ in range(100):
            fill(spool, 5, 1000)
        backlog = spool.backlog_bytes
        assert spool.full
        SpoolReader(folder).consumed(250)
        assert abs(spool.backlog_bytes - backlog // 2) <= 1 << 16 < spool.backlog_limit - backlog // 2
    with Spool.open(folder) as spool:
        assert abs(spool.backlog_bytes - backlog // 2) <= 1 << 20


def test_a_reader_of_a_spool_that_was_replaced_notices(folder: Path) -> None:
    with Spool.open(folder) as spool:
        fill(spool, 5)
    reader = SpoolReader(folder)
    for path in folder.iterdir():
        path.unlink()
    with Spool.open(folder) as spool:
        fill(spool, 5)
    with pytest.raises(SpoolReplaced, match=f"spool {reader.uuid} was opened"):
        list(reader.blocks(0, 5))


def test_a_tag_that_no_frame_can_hold_is_refused(spool: Spool) -> None:
    spool.append(b"", tag=bytes(65535), ingest_us=0)
    with pytest.raises(ValueError, match="65536"):
        spool.append(b"", tag=bytes(65536), ingest_us=0)
    assert spool.sync() == 1


def test_shards_are_found_in_their_order(tmp_path: Path) -> None:
    assert spools_in(tmp_path) == []
    for name in ("shard-1", "shard-0"):
        Spool.open(tmp_path / name).close()
    assert [path.name for path in spools_in(tmp_path)] == ["shard-0", "shard-1"]
    assert spools_in(tmp_path / "shard-0") == [tmp_path / "shard-0"]
