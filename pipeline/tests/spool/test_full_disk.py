"""A full disk: no message is accepted that is not stored, and stored messages can be read and freed."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from pipeline.tests.spool.feeds import Feed, receiving, settings_for
from pipeline.tests.spool.support import fill, holds
from trouter_pipeline.spool import Spool, SpoolReader
from trouter_pipeline.spool.receiver import Progress, receive
from trouter_pipeline.spool.segments import segments_in

SIZE = 10_000


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 8 MiB."""
    place = tmp_path / "volume"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "none", place], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small volume cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def use_up(volume: Path) -> None:
    """Fill the disk."""
    rest = os.open(volume / "rest", os.O_WRONLY | os.O_CREAT)
    with pytest.raises(OSError, match="No space left"):  # noqa: PT012
        while True:
            os.write(rest, bytes(512))
    os.close(rest)


def fill_up(spool: Spool) -> OSError:
    """Append groups of ten until the disk is full; return the error."""
    with pytest.raises(OSError) as full:  # noqa: PT011, PT012 - looked at by the caller
        while True:
            fill(spool, 10, SIZE)
    return full.value


def test_a_message_that_did_not_fit_is_absent_and_the_error_stays(volume: Path) -> None:
    with Spool.open(volume) as spool:
        error = fill_up(spool)
        durable = spool.durable
        assert error.errno == errno.ENOSPC
        assert error.filename == str(volume / f"{0:016}.spool")
        assert 700 < durable < 840
        assert SpoolReader(volume).durable() == durable
        for again in (spool.sync, spool.reap, lambda: spool.append(b"", ingest_us=0)):
            with pytest.raises(OSError, match="No space left on device"):
                again()
    holds(volume, 0, durable, SIZE)


@pytest.mark.parametrize("segment_bytes", [1 << 20, 16 << 20])
def test_a_full_spool_opens_without_room_and_has_room_once_messages_are_consumed(
    volume: Path, segment_bytes: int
) -> None:
    with Spool.open(volume, segment_bytes=segment_bytes) as spool:
        fill_up(spool)
        durable = spool.durable
    use_up(volume)
    with Spool.open(volume, segment_bytes=segment_bytes) as spool:
        assert (spool.next, spool.durable) == (durable, durable)
        assert fill_up(spool).errno == errno.ENOSPC
    with Spool.open(volume, segment_bytes=segment_bytes) as spool:
        holds(volume, 0, durable, SIZE)
        SpoolReader(volume).consumed(durable)
        spool.reap()
        fill(spool, 300, SIZE)
        assert spool.durable == durable + 300
    holds(volume, durable, durable + 300, SIZE)


def test_segments_of_a_full_spool_go_one_by_one(volume: Path) -> None:
    with Spool.open(volume, segment_bytes=1 << 20) as spool:
        fill_up(spool)
        durable = spool.durable
    reader = SpoolReader(volume)
    reader.consumed(250)
    assert 150 < reader.first <= 250
    with Spool.open(volume, segment_bytes=1 << 20) as spool:
        fill(spool, 100, SIZE)
    holds(volume, 250, durable + 100, SIZE)


async def test_exactly_the_messages_on_the_disk_are_accepted(volume: Path, nursery: trio.Nursery) -> None:
    feed = Feed(size=SIZE)
    await nursery.start(feed.serve)
    progress = Progress()
    with Spool.open(volume) as spool:
        with trio.fail_after(60), pytest.raises(OSError, match="No space left on device") as full:
            await receive(spool, settings_for(feed.url), progress)
        assert (full.value.errno, spool.failure is not None) == (errno.ENOSPC, True)
        last = segments_in(volume)[-1].path  # a machine under load may have begun another one
        assert (progress.state, progress.trouble) == ("failed", f"No space left on device: {last}")
        durable = spool.durable
    await feed.until(lambda: feed.link_detached)
    assert durable > 100
    assert feed.accepted == list(range(durable))
    assert len(feed.deliveries) > durable
    holds(volume, 0, durable, SIZE)


async def test_after_room_was_made_the_rest_follows(volume: Path, nursery: trio.Nursery) -> None:
    first = Feed(size=SIZE)
    await nursery.start(first.serve)
    with Spool.open(volume) as spool, trio.fail_after(60), pytest.raises(OSError, match="No space left"):
        await receive(spool, settings_for(first.url), Progress())
    durable = SpoolReader(volume).durable()
    SpoolReader(volume).consumed(durable)
    second = Feed(size=SIZE, begin=durable, count=100)
    await nursery.start(second.serve)
    with Spool.open(volume) as spool:
        async with receiving(spool, settings_for(second.url)):
            await second.until(lambda: len(second.accepted) == 100)
    holds(volume, durable, durable + 100, SIZE)
