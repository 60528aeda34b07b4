"""Segments as a stream: exact offsets, compressed or not, and an error for missing or changed ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.tests.attacked import denial, login
from pipeline.tests.generate import SECOND, START, Scribe, again, lose, segments
from trouter.records.reader import Corrupt
from trouter_pipeline.following import RecordsDataSource, RecordsGone

pytestmark = pytest.mark.one_twin


def reader(*folders: Path, kinds: str = "sasl.outcome,policy.decision") -> Any:
    options = {"folders": json.dumps([str(folder) for folder in folders]), "kinds": kinds}
    return RecordsDataSource(options).streamReader(None)


def rows(of: Any, start: dict[str, int], end: dict[str, int]) -> list[tuple[Any, ...]]:
    return [row for part in of.partitions(start, end) for row in of.read(part)]


def scribe_of(folder: Path, count: int, *, compress: bool = False) -> Scribe:
    """Write logins in segments of ten, and one denial in each."""
    scribe = Scribe(folder, "QDR.A", compress=compress)
    records = [
        login(START + n * SECOND, "alice", "h") if n % 10 else denial(START + n * SECOND, "a", "h")
        for n in range(count)
    ]
    scribe.write_all(records, 10)
    return scribe


def test_offsets_are_record_numbers_and_a_batch_lies_between_two_offsets(tmp_path: Path) -> None:
    scribe_of(tmp_path, 35)
    source = reader(tmp_path)
    assert source.initialOffset() == {}
    (name, end), *_ = source.latestOffset().items()
    assert end == 35
    assert [row[2] for row in rows(source, {}, {name: 35})] == list(range(35))
    assert [row[2] for row in rows(source, {name: 7}, {name: 23})] == list(range(7, 23))
    assert rows(source, {name: 35}, {name: 35}) == []
    first = rows(source, {}, {name: 1})[0]
    assert first[:1] == ("QDR.A",)
    assert first[3:5] == (START, "policy.decision")
    assert json.loads(first[5])["host"] == "h"
    assert {row[4] for row in rows(reader(tmp_path, kinds="sasl.outcome"), {}, {name: 35})} == {"sasl.outcome"}


def test_records_of_an_open_segment_wait_until_the_segment_is_complete(tmp_path: Path) -> None:
    scribe = scribe_of(tmp_path, 10)
    source = reader(tmp_path)
    before = source.latestOffset()
    scribe.write(login(START + 60 * SECOND, "bob", "h"))
    assert source.latestOffset() == before
    scribe.rotate()
    (name, end), *_ = source.latestOffset().items()
    assert [row[2] for row in rows(source, before, {name: end})] == [10]


def test_a_segment_that_was_compressed_meanwhile_is_the_same(tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    scribe_of(plain, 20)
    scribe_of(packed, 20, compress=True)
    assert {path.suffix for path in segments(packed)} == {".gz"}
    source = reader(plain)
    end = source.latestOffset()
    parts = source.partitions({}, end)
    for path in segments(plain):
        lose(path)
    for path in segments(packed):
        again(path, plain)
    assert [row[2] for part in parts for row in source.read(part)] == list(range(20))
    assert source.latestOffset() == end


def test_two_starts_have_offsets_of_their_own(tmp_path: Path) -> None:
    scribe_of(tmp_path / "a", 10).stop()
    scribe_of(tmp_path / "a", 20)
    assert sorted(reader(tmp_path / "a").latestOffset().values()) == [10, 20]


def test_records_deleted_before_reading_are_an_error(tmp_path: Path) -> None:
    scribe_of(tmp_path, 30)
    source = reader(tmp_path)
    (name, end), *_ = source.latestOffset().items()
    parts = source.partitions({name: 3}, {name: end})
    lose(segments(tmp_path)[0])
    with pytest.raises(RecordsGone, match=f"the records 3 to 9 of {name} were deleted before they were read"):
        source.partitions({name: 3}, {name: end})
    with pytest.raises(RecordsGone, match=r"0000000000000000.jsonl is not there"):
        list(source.read(parts[0]))
    assert [row[2] for row in rows(source, {}, {name: end})] == list(
        range(10, 30)
    )  # a new stream begins with the existing ones


def test_segments_that_were_deleted_are_forgotten(tmp_path: Path) -> None:
    scribe_of(tmp_path, 50)
    source = reader(tmp_path)
    end = source.latestOffset()
    for path in segments(tmp_path)[:3]:
        lose(path)
    assert source.latestOffset() == end
    assert len(source._last) == 2


def test_a_changed_segment_is_reported_with_the_octet(tmp_path: Path) -> None:
    scribe_of(tmp_path, 20)
    source = reader(tmp_path)
    end = source.latestOffset()
    path = segments(tmp_path)[1]
    octets = path.read_bytes()
    path.write_bytes(octets.replace(b"alice", b"malet", 1))
    with pytest.raises(Corrupt, match=r"0000000000000010.jsonl: byte \d+: the checksum"):
        rows(source, {}, end)
    path.write_bytes(octets[:-20])
    with pytest.raises(RecordsGone, match="no trailer can be read"):
        reader(tmp_path).latestOffset()
