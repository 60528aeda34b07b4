"""Compressed segments have and prove the same as plain ones, wherever the compression is interrupted."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.records.written import at, drops_of, lines_of, links_of, opened, taken
from trouter.cli.records import _Follower
from trouter.records.check import check_folder
from trouter.records.compression import compress
from trouter.records.segments import segments_in
from trouter.records.writer import Bounds, SegmentWriter

GZIP = Bounds(segment_bytes=100_000, compress=True)


def written(folder: Path, batches: int = 10, bounds: Bounds = GZIP) -> SegmentWriter:
    writer = opened(folder, bounds)
    for batch in range(batches):
        writer.write(taken(256, batch * 256), at(batch))
        writer.tick(at(batch))
    return writer


def rests(folder: Path) -> list[str]:
    return [place.rest for place in segments_in(folder)]


def test_segments_that_are_complete_are_compressed_and_prove_themselves(tmp_path: Path) -> None:
    plain = written(tmp_path / "plain", bounds=Bounds(segment_bytes=100_000))
    writer = written(tmp_path / "gzip")
    assert rests(tmp_path / "gzip") == [".gz"] * (len(rests(tmp_path / "gzip")) - 1) + [".open"]
    assert links_of(tmp_path / "gzip") == list(range(2560))
    assert writer.held_bytes < plain.held_bytes / 2
    assert writer.held_bytes == sum(place.path.stat().st_size for place in segments_in(tmp_path / "gzip"))
    assert all(place.path.stat().st_mode & 0o777 == 0o640 for place in segments_in(tmp_path / "gzip"))
    for each in (plain, writer):
        each.close(at(20))
    assert [line.octets for line in lines_of(tmp_path / "gzip")] == [
        line.octets for line in lines_of(tmp_path / "plain")
    ]
    assert check_folder(tmp_path / "gzip").errors == []


def test_a_segment_left_plain_at_the_end_is_compressed_after_the_next_start(tmp_path: Path) -> None:
    written(tmp_path, bounds=Bounds(segment_bytes=100_000)).close(at(20))
    writer = opened(tmp_path, GZIP, 30)
    for second in range(31, 60):
        writer.tick(at(second))
    assert set(rests(tmp_path)) == {".gz"}
    writer.close(at(60))
    assert links_of(tmp_path) == list(range(2560))


@pytest.mark.parametrize("stage", ["a part", "both"])
def test_a_compression_that_is_broken_off_costs_nothing(tmp_path: Path, stage: str) -> None:
    written(tmp_path, bounds=Bounds(segment_bytes=100_000)).close(at(20))
    first = segments_in(tmp_path)[0].path
    octets = first.read_bytes()
    end = ".gz.part" if stage == "a part" else ".gz"
    first.with_name(first.name + end).write_bytes(gzip.compress(octets)[: None if stage == "both" else 100])
    assert links_of(tmp_path) == list(range(2560))
    assert check_folder(tmp_path).errors == []
    opened(tmp_path, seconds=30).close(at(31))
    assert not list(tmp_path.glob("*.gz*"))
    assert links_of(tmp_path) == list(range(2560))


def test_a_segment_that_cannot_be_compressed_stays_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", fails)
    writer = written(tmp_path)
    writer.close(at(20))
    assert set(rests(tmp_path)) == {""}
    assert not list(tmp_path.glob("*.gz*"))
    assert links_of(tmp_path) == list(range(2560))
    assert "it stays as it is: No space left on device" in caplog.text


def test_the_oldest_segments_are_deleted_compressed_or_not_and_reported(tmp_path: Path) -> None:
    writer = written(tmp_path, 200, Bounds(max_bytes=200_000, compress=True))
    assert writer.held_bytes <= 200_000
    assert ".gz" in rests(tmp_path)
    assert len(writer.retention.plain) <= len(rests(tmp_path))
    writer.close(at(1000))
    first = segments_in(tmp_path)[0].first
    assert first > 0
    assert max(dropped.to_n for dropped in drops_of(tmp_path)) >= first - 1
    assert check_folder(tmp_path).errors == []


def cut(octets: bytes) -> bytes:
    return octets[: len(octets) // 2]


def longer(octets: bytes) -> bytes:
    return octets + b"more"


def other(octets: bytes) -> bytes:
    return gzip.compress(gzip.decompress(octets).replace(b"start", b"stats", 1))


@pytest.mark.parametrize("spoil", [cut, longer, other])
def test_any_damage_of_a_compressed_segment_is_reported(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    written(tmp_path).close(at(20))
    path = segments_in(tmp_path)[1].path
    path.write_bytes(spoil(path.read_bytes()))
    errors = check_folder(tmp_path).errors
    assert any(str(path) in error and "byte " in error for error in errors)


def test_every_flipped_bit_of_the_content_is_noticed(tmp_path: Path) -> None:
    written(tmp_path).close(at(20))
    path = segments_in(tmp_path)[1].path
    octets, chance = path.read_bytes(), random.Random(7)
    whole = gzip.decompress(octets)
    for _ in range(30):
        at_bit = chance.randrange(len(octets) * 8)
        flipped = bytearray(octets)
        flipped[at_bit // 8] ^= 1 << (at_bit % 8)
        path.write_bytes(flipped)
        errors = check_folder(tmp_path).errors
        try:
            same = gzip.decompress(bytes(flipped)) == whole
        except Exception:  # noqa: BLE001 - however it fails
            same = False
        assert bool(errors) != same


def test_a_follower_reads_no_segment_twice(tmp_path: Path) -> None:
    writer = written(tmp_path)
    following = _Follower(tmp_path)
    follower = following.lines()
    writer.write(taken(1, 2560), at(11))
    assert next(follower).n == 2560
    writer.tick(at(100))  # complete by its age
    writer.tick(at(101))
    assert set(rests(tmp_path)) == {".gz"}
    writer.write(taken(1, 2561), at(102))
    assert next(follower).n == 2561
    writer.close(at(103))
    del follower
    for file, _ in following._reading.values():
        file.close()


def test_the_time_of_a_segment_stays(tmp_path: Path) -> None:
    written(tmp_path, bounds=Bounds(segment_bytes=100_000)).close(at(20))
    path = segments_in(tmp_path)[0].path
    before = path.stat().st_mtime_ns
    whole, size = compress(path)
    assert (whole.stat().st_mtime_ns, whole.stat().st_size) == (before, size)
    assert not path.exists()
