"""Segments become rows: every record once, faulty input is refused, and it delays no other."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pipeline.tests.generate import (
    DAY,
    HOUR,
    START,
    Ledger,
    Scribe,
    again,
    lines_of,
    overlap,
    segments,
    traffic,
    write_segment,
)
from trouter.cli import main
from trouter.records import KINDS, ClockStep, LinkStalled, Record
from trouter.records.check import check_folder
from trouter.records.marks import Mark, is_marked, mark_path, read_mark
from trouter.records.segments import SegmentHeader
from trouter.records.stream import Taken
from trouter.records.writer import Bounds, Now, SegmentWriter
from trouter_pipeline import compact as compaction
from trouter_pipeline.compact import Summary, compact, in_processes
from trouter_pipeline.datasets import UNKNOWN, NoRecords, Records, columns_of, table_columns
from trouter_pipeline.delta import BadTable, Folder
from trouter_pipeline.files import TableBusy, locked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.one_twin

LAST = (1 << 63) - 1


def scribe(folder: Path, **settings: Any) -> Scribe:
    return Scribe(folder / "in", **settings)


def day(folder: Path, connections: int = 10, per_segment: int = 100, **settings: Any) -> list[Path]:
    """Write the segments of some hours of an ordinary router."""
    writer = scribe(folder, **settings)
    ledger = Ledger("QDR.A", writer.boot)
    writer.write_all(traffic(ledger, seed=7, connections=connections), per_segment)
    writer.stop()
    return segments(folder / "in")


def run(folder: Path, *others: Path) -> Summary:
    return compact([folder / "in", *others], folder / "root")


def rows(folder: Path, kind: str = "delivery.interval") -> list[dict[str, Any]]:
    found = [
        row
        for file in Records(folder / "root").paths(kind)
        for row in pq.read_table(file, partitioning=None).to_pylist()
    ]
    return sorted(found, key=lambda row: (row["router"], row["boot"], row["n"]))


def numbers(folder: Path) -> list[int]:
    return sorted(row["n"] for kind in (*KINDS, UNKNOWN) for row in rows(folder, kind))


def example(kind: type[Record], n: int) -> Record:
    """Return a record with a value in every field."""
    values: dict[Any, Any] = {
        int: n,
        str: f"text {n}",
        bool: True,
        list[str]: ["a", "b"],
        list[int]: [1, 2],
        dict[str, str]: {"a": "b"},
        dict[str, int]: {"a": 1},
    }
    import msgspec

    fields = {}
    for field in msgspec.structs.fields(kind):
        shape = field.type
        found = values.get(shape)
        if found is None:
            found = next(value for known, value in values.items() if shape == known | None)
        fields[field.name] = found
    return kind(**{**fields, "n": -1, "t": START + n})


def test_every_kind_of_record_survives_compaction_unchanged(tmp_path: Path) -> None:
    writer = scribe(tmp_path)
    made = [example(kind, n) for n, kind in enumerate(KINDS.values())]
    writer.write(*made)
    writer.stop()
    assert not run(tmp_path).errors
    for n, record in enumerate(made):
        (row,) = rows(tmp_path, record.tag)
        assert (row["router"], row["boot"], row["n"], row["t_us"], row["v"]) == ("QDR.A", writer.boot, n, record.t, 1)
        assert int(row["t"].timestamp() * 1_000_000) == record.t
        assert row["seg"] == segments(tmp_path / "in")[0].name
        for column in columns_of(record.tag)[7:]:
            value = getattr(record, column.name.removeprefix("of_"))
            assert row[column.name] == (list(value.items()) if isinstance(value, dict) else value), column


@pytest.mark.parametrize("compress", [False, True])
def test_a_day_of_segments_is_there_once_and_sorted_by_tenant(tmp_path: Path, compress: bool) -> None:
    made = day(tmp_path, compress=compress)
    assert any(path.suffix == ".gz" for path in made) == compress
    summary = run(tmp_path)
    assert (summary.errors, summary.gaps, summary.segments) == ([], [], len(made))
    assert numbers(tmp_path) == list(range(summary.records))
    for file in Records(tmp_path / "root").paths("delivery.interval"):
        tenants = pq.read_table(file, partitioning=None)["vhost"].to_pylist()
        assert tenants == sorted(tenants)


def test_a_compacted_segment_is_not_read_again_after_compression_or_copying(tmp_path: Path) -> None:
    made = day(tmp_path)
    first = run(tmp_path)
    packed = made[0].with_name(made[0].name + ".gz")
    packed.write_bytes(gzip.compress(made[0].read_bytes(), mtime=0))
    made[0].unlink()
    odd = made[1].with_name(made[1].name + ".gz")  # other than trouter compresses: of several members
    octets = made[1].read_bytes()
    odd.write_bytes(gzip.compress(octets[:500]) + gzip.compress(octets[500:]))
    made[1].unlink()
    again(made[2], tmp_path / "copies")
    before = Records(tmp_path / "root").version
    second = run(tmp_path, tmp_path / "copies")
    assert (second.segments, second.records, second.known, second.errors) == (0, 0, first.segments + 1, [])
    after = Records(tmp_path / "root").version
    assert before is not None
    assert after is not None
    assert after.number == before.number


def test_copies_of_new_segments_are_taken_once(tmp_path: Path) -> None:
    made = day(tmp_path)
    for path in made:
        again(path, tmp_path / "copies")
    summary = run(tmp_path, tmp_path / "copies")
    assert (summary.segments, summary.known, summary.errors) == (len(made), len(made), [])
    assert numbers(tmp_path) == list(range(summary.records))


def test_segments_may_come_in_any_order_and_at_any_time(tmp_path: Path) -> None:
    made = day(tmp_path)
    aside = tmp_path / "aside"
    aside.mkdir()
    parked = [path.rename(aside / path.name) for path in made]
    random.Random(3).shuffle(parked)
    for path in parked:
        path.rename(tmp_path / "in" / path.name)
        assert not run(tmp_path).errors
    assert not run(tmp_path).gaps
    assert numbers(tmp_path) == list(range(len(numbers(tmp_path))))


@pytest.mark.parametrize("before", [True, False], ids=["in one run", "later"])
def test_an_overlap_of_the_same_records_adds_nothing(tmp_path: Path, before: bool) -> None:
    made = day(tmp_path)
    if not before:
        run(tmp_path)
    extra = overlap(made[1], made[2], tmp_path / "backup")
    summary = run(tmp_path, tmp_path / "backup")
    assert summary.errors == []
    assert any(str(path) in note and "were there already" in note for note in summary.notes for path in (extra, *made))
    assert numbers(tmp_path) == list(range(len(numbers(tmp_path))))
    assert run(tmp_path, tmp_path / "backup").notes == []


def test_an_overlapping_copy_fills_missing_records(tmp_path: Path) -> None:
    made = day(tmp_path)
    whole = [n for path in made for n, _ in lines_of(path)[1]]
    overlap(made[1], made[2], tmp_path / "backup")
    lost = lines_of(made[2])[1]
    made[2].unlink()
    summary = run(tmp_path, tmp_path / "backup")
    half = [n for n, _ in lost][len(lost) // 2 :]
    assert numbers(tmp_path) == sorted(set(whole) - set(half))
    assert [(gap.from_n, gap.to_n, gap.explained) for gap in summary.gaps] == [(half[0], half[-1], False)]


def test_another_record_under_the_same_number_is_an_error_that_names_both(tmp_path: Path) -> None:
    made = day(tmp_path)
    header, lines = lines_of(made[1])
    at = next(index for index, (_, record) in enumerate(lines) if record.tag == "delivery.interval")
    lines[at][1].d_msgs += 1  # type: ignore[attr-defined]
    bad = write_segment(tmp_path / "forged", header, lines)
    run(tmp_path)
    good = rows(tmp_path)
    summary = run(tmp_path, tmp_path / "forged")
    (error,) = summary.errors
    assert error.startswith(f"{bad}: ")  # two routers with one id have segments of one name
    assert made[1].name in error
    assert "or two routers have this id" in error
    assert f"number {lines[at][0]} " in error
    assert rows(tmp_path) == good


def test_another_kind_under_the_same_number_is_one_as_well(tmp_path: Path) -> None:
    made = day(tmp_path)
    run(tmp_path)
    header, lines = lines_of(made[0])
    write_segment(tmp_path / "forged", header, [(n, ClockStep(t=r.t, old_offset=1, new_offset=2)) for n, r in lines])
    assert "different records under the number" in run(tmp_path, tmp_path / "forged").errors[0]


def test_an_unfinished_segment_waits_and_the_others_are_compacted(tmp_path: Path) -> None:
    made = day(tmp_path)
    last = made[-1]
    last.rename(last.with_name(last.name + ".open"))
    summary = run(tmp_path)
    assert (summary.unfinished, summary.errors, summary.segments) == (1, [], len(made) - 1)
    last.with_name(last.name + ".open").rename(last)
    assert (run(tmp_path).segments, run(tmp_path).segments) == (1, 0)


def test_each_fault_is_reported_with_file_and_octet_and_leaves_out_that_segment_alone(tmp_path: Path) -> None:
    chance = random.Random(5)
    made = day(tmp_path, per_segment=20)
    whole = {path: path.read_bytes() for path in made}
    for path in made[: len(made) // 2]:
        octets = bytearray(whole[path])
        fault = chance.randrange(4)
        if fault == 0:
            octets[chance.randrange(len(octets))] ^= 1 << chance.randrange(8)
        elif fault == 1:
            del octets[chance.randrange(len(octets)) :]
        else:
            lines = bytes(octets).splitlines(keepends=True)
            at = chance.randrange(1, len(lines) - 1)
            octets = bytearray(
                b"".join([*lines[: at + fault - 2], *lines[at:]] if fault == 3 else [*lines[:at], *lines[at + 1 :]])
            )
            if bytes(octets) == whole[path]:
                octets = octets[:-5]
        path.write_bytes(octets)
    damaged = [path for path in made if path.read_bytes() != whole[path]]
    summary = run(tmp_path)
    assert len(summary.errors) == len(damaged)
    for path, error in zip(damaged, summary.errors, strict=True):
        assert error.startswith(f"{path}: byte ")
    assert summary.segments == len(made) - len(damaged)
    for path in made:
        path.write_bytes(whole[path])
    assert run(tmp_path).errors == []
    assert numbers(tmp_path) == list(range(len(numbers(tmp_path))))


def test_a_segment_of_another_version_is_reported_and_left_out(tmp_path: Path) -> None:
    made = day(tmp_path)
    made[1].write_bytes(made[1].read_bytes().replace(b'"v":1,', b'"v":2,', 1))
    (error,) = run(tmp_path).errors
    assert error.startswith(f"{made[1]}: byte 0: the records are of version 2")


def header_of(first: int = 0) -> SegmentHeader:
    return SegmentHeader(v=1, router="QDR.A", boot=START // 1_000_000, first=first, utc=START, mono=0)


def raw_segment(folder: Path, *lines: bytes) -> Path:
    """Write a segment of any lines, with a valid trailer."""
    import zlib

    from trouter.records.segments import Trailer, line_of, segment_name

    octets = line_of(header_of()) + b"".join(line + b"\n" for line in lines)
    trailer = Trailer(count=len(lines), last=len(lines) - 1, crc=zlib.crc32(octets))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / segment_name("QDR%2EA", header_of().boot, 0)
    path.write_bytes(octets + line_of(trailer))
    return path


def test_a_record_of_an_unknown_kind_is_kept_as_written(tmp_path: Path) -> None:
    odd = b'{"n":0,"k":"moon.phase","t":1772323200000000,"text":"\\ud83d\\ude00 \\u0000","deep":[1,{"a":null}]}'
    known = b'{"n":1,"k":"clock.step","t":1772323200000001,"old_offset":1,"new_offset":2,"why":"leap"}'
    path = raw_segment(tmp_path / "in", odd, known)
    summary = run(tmp_path)
    assert summary.errors == []
    assert summary.notes == [f"{path}: clock.step has fields that are not known and left out: why"]
    (row,) = rows(tmp_path, UNKNOWN)
    assert (row["k"], row["n"], row["json"]) == ("moon.phase", 0, odd.decode())
    assert [row["new_offset"] for row in rows(tmp_path, "clock.step")] == [2]


HOSTILE = ["", "a\r\nb", "\x1b[2J", "\x00", "'\"\\", "🂡" * 100, "x" * 10_000, "NULL", "\u202e"]


def test_numbers_and_texts_at_their_limits_are_kept_as_they_are(tmp_path: Path) -> None:
    writer = scribe(tmp_path)
    made: list[Record] = [
        LinkStalled(t=START, conn=value, link=-value, since=value, unsettled=0, state=text, addr=text)
        for value in (LAST, -LAST - 1 + 1, 0)
        for text in HOSTILE
    ]
    made.append(ClockStep(t=253_402_300_799_000_000, old_offset=-LAST - 1, new_offset=LAST))
    writer.write(*made)
    writer.stop()
    assert run(tmp_path).errors == []
    assert [(row["conn"], row["state"]) for row in rows(tmp_path, "link.stalled")] == [
        (record.conn, record.state) for record in made if isinstance(record, LinkStalled)
    ]
    (row,) = rows(tmp_path, "clock.step")
    assert (row["old_offset"], row["new_offset"], row["t_us"]) == (-LAST - 1, LAST, 253_402_300_799_000_000)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"n":1,"k":"clock.step","t":5,"old_offset":1,"new_offset":9223372036854775808}', "fits no table"),
        (b'{"n":1,"k":"alarm","t":5,"name":"\\ud800","severity":"","subject":"","state":""}', ""),
        (b'{"n":1,"k":"clock.step","t":5,"old_offset":1}', "this is not a record"),
        (b'{"n":0,"k":"clock.step","t":5,"old_offset":1,"new_offset":1}', "comes after 0"),
        (b'{"n":1,"k":"clock.step","old_offset":1,"new_offset":1}', "must have a number and a time"),
        (b"[" * 5000, "this is not a record"),
        (b"", "this is not a record"),
    ],
)
def test_a_line_that_is_no_record_is_reported_though_the_checksum_holds(tmp_path: Path, line: bytes, why: str) -> None:
    good = b'{"n":0,"k":"clock.step","t":5,"old_offset":1,"new_offset":2}'
    path = raw_segment(tmp_path / "in", good, line)
    offset = path.read_bytes().index(good) + len(good) + 1
    (error,) = run(tmp_path).errors
    assert error.startswith(f"{path}: byte {offset}: ")
    assert why in error
    assert rows(tmp_path, "clock.step") == []


def test_a_gap_of_dropped_records_is_explained_and_a_gap_of_a_lost_segment_is_not(tmp_path: Path) -> None:
    writer = scribe(tmp_path)
    writer.write(*[ClockStep(t=START + n, old_offset=n, new_offset=n) for n in range(10)])
    writer.drop(link_stalled=5)
    writer.rotate()
    writer.write(*[ClockStep(t=START + n, old_offset=n, new_offset=n) for n in range(10, 20)])
    writer.rotate()
    writer.write(ClockStep(t=START + HOUR, old_offset=0, new_offset=0))
    writer.stop()
    made = segments(tmp_path / "in")
    made[1].unlink()
    gaps = [(gap.from_n, gap.to_n, gap.reason) for gap in run(tmp_path).gaps]
    assert gaps == [(10, 14, "queue-full"), (16, 25, "")]


def test_records_go_to_the_day_on_which_their_interval_began(tmp_path: Path) -> None:
    writer = scribe(tmp_path, at=START + DAY - HOUR)
    ledger = Ledger("QDR.A", writer.boot)
    writer.write_all(traffic(ledger, seed=1, begin=START + DAY - HOUR, end=START + DAY + HOUR, connections=8))
    writer.stop()
    assert run(tmp_path).dates == ["2026-03-01", "2026-03-02"]
    days = Records(tmp_path / "root").kinds["delivery.interval"]
    assert set(days) == {"2026-03-01", "2026-03-02"}
    for number, date in enumerate(sorted(days)):
        times = [
            t
            for file in Records(tmp_path / "root").paths("delivery.interval", [date])
            for t in pq.read_table(file, partitioning=None)["t0"].to_pylist()
        ]
        assert {t // DAY - START // DAY for t in times} == {number}


def test_a_segment_of_more_than_is_taken_at_once_is_taken_whole(tmp_path: Path) -> None:
    count = 150_000  # several pieces of lines, several parts of a table
    lines = [b'{"n":%d,"k":"clock.step","t":%d,"old_offset":%d,"new_offset":7}' % (n, n, -n) for n in range(count)]
    raw_segment(tmp_path / "in", *lines)
    assert run(tmp_path).records == count
    (file,) = Records(tmp_path / "root").paths("clock.step")
    found = pq.read_table(file, columns=["n", "old_offset"], partitioning=None)
    assert found.to_pydict() == {"n": [*range(count)], "old_offset": [-n for n in range(count)]}


def test_two_starts_in_one_second_are_two(tmp_path: Path) -> None:
    for _ in range(2):
        writer = scribe(tmp_path)
        writer.write(ClockStep(t=START, old_offset=0, new_offset=0))
        writer.stop()
    assert run(tmp_path).errors == []
    assert len({row["boot"] for row in rows(tmp_path, "clock.step")}) == 2


def test_small_files_become_one(tmp_path: Path) -> None:
    made = day(tmp_path, per_segment=40)
    aside = tmp_path / "aside"
    aside.mkdir()
    parked = [path.rename(aside / path.name) for path in made]
    for path in parked:
        path.rename(tmp_path / "in" / path.name)
        run(tmp_path)
    assert len(parked) > 16
    assert len(Records(tmp_path / "root").paths("delivery.interval")) < 17
    assert numbers(tmp_path) == list(range(len(numbers(tmp_path))))


def test_files_of_a_run_that_was_killed_are_not_read_and_go_with_a_vacuum(tmp_path: Path) -> None:
    day(tmp_path, connections=3)
    run(tmp_path)
    (named,) = Records(tmp_path / "root").paths("delivery.interval")
    left = Path(named).with_name("of-a-run-that-was-killed.parquet")
    left.write_bytes(b"half")
    staging = tmp_path / "root" / "records" / "_staging" / "dead"
    staging.mkdir(parents=True)
    for path in (left, staging):
        os.utime(path, (0, 0))
    assert run(tmp_path).errors == []
    assert Records(tmp_path / "root").paths("delivery.interval") == [named]
    Records(tmp_path / "root").folder.vacuum(1, really=True)
    assert [path.exists() for path in (left, staging, Path(named))] == [False, False, True]


def test_of_two_that_compact_the_same_segments_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they do not see each other's lock, as on an object store."""
    made = day(tmp_path)
    place = Folder.place

    def racing(self: Folder, *given: Any) -> Any:
        monkeypatch.undo()
        assert run(tmp_path).segments == len(made)
        return place(self, *given)

    monkeypatch.setattr(Folder, "locked", lambda _: nullcontext())
    monkeypatch.setattr(Folder, "place", racing)
    with pytest.raises(TableBusy, match="another process has compacted; begin again"):
        run(tmp_path)
    assert numbers(tmp_path) == list(range(len(numbers(tmp_path))))
    assert run(tmp_path).known == len(made)


def test_other_programs_read_records_of_a_version(tmp_path: Path) -> None:
    day(tmp_path)
    summary = run(tmp_path)
    uri = str(tmp_path / "root" / "records")
    kinds = set(Records(tmp_path / "root").kinds)
    asked = duckdb.from_arrow(DeltaTable(uri, version=1).to_pyarrow_dataset())
    counted = {kind: count for kind, count in asked.aggregate("record, count(*)").fetchall() if kind in kinds}
    assert sum(counted.values()) == summary.records
    lazy = pl.scan_delta(uri, version=1).filter(pl.col("record") == "delivery.interval")
    assert lazy.select(pl.len()).collect().item() == counted["delivery.interval"]
    assert lazy.select(pl.col("d_msgs").sum()).collect().item() == sum(row["d_msgs"] for row in rows(tmp_path))
    last = DeltaTable(uri).history(1)[0]
    assert last["userMetadata"] == f"trouter compact, {summary.segments} segments"
    assert len(last["trouter"]["segments"]) == summary.segments


def test_a_kind_of_a_newer_program_gets_its_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    day(tmp_path, connections=1)
    older = {name: kind for name, kind in table_columns().items() if name != "d_msgs"}
    Folder(tmp_path / "root" / "records").create(older, ("record", "date"))
    monkeypatch.setattr(compaction, "table_columns", lambda: {**older, "n": "string"})
    with pytest.raises(BadTable, match="the column n is long, not string"):
        compact([tmp_path / "in"], tmp_path / "root")
    monkeypatch.undo()
    made = Records(tmp_path / "root")
    assert made.version is not None
    made.folder.widen(made.version, table_columns())
    assert run(tmp_path).segments
    made = Records(tmp_path / "root")
    assert made.version is not None
    assert made.version.columns == table_columns()


def test_several_processes_make_the_same_rows(tmp_path: Path) -> None:
    made = day(tmp_path, connections=4)
    summary = compact([tmp_path / "in"], tmp_path / "root", run=in_processes(2), cores=1 << 20)
    assert (summary.segments, summary.errors) == (len(made), [])
    assert numbers(tmp_path) == list(range(summary.records))


def test_tasks_of_spark_make_the_same_rows_wherever_they_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tasks have another working folder than the command, and a faulty segment stops no other task."""
    made = day(tmp_path, connections=40)
    made[3].write_bytes(made[3].read_bytes()[:-10])
    compact([tmp_path / "in"], tmp_path / "other")
    monkeypatch.chdir(tmp_path)
    assert main(["pipeline", "compact", "in", "root", "--master", "local[2]", "--mark", "--quiet", "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert (printed["segments"], printed["marked"], len(printed["errors"])) == (len(made) - 1, len(made) - 1, 1)
    assert f"{made[3]}: byte" in printed["errors"][0]
    there, expected = Records(tmp_path / "root"), Records(tmp_path / "other")
    assert there.segments == expected.segments
    assert {kind: sorted(days) for kind, days in there.kinds.items()} == {
        kind: sorted(days) for kind, days in expected.kinds.items()
    }
    (tmp_path / "second").mkdir()
    shutil.move(tmp_path / "other", tmp_path / "second" / "root")
    for kind in there.kinds:
        assert rows(tmp_path, kind) == rows(tmp_path / "second", kind)
    assert main(["pipeline", "compact", "in", "root", "--master", "local[2]", "--quiet"]) == 1
    assert f"0 segments with 0 new records; {len(made) - 1} known before" in capsys.readouterr().out


def test_the_command_works_in_tasks_of_spark_if_there_is_work(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def jobs() -> int:
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(None))

    made = day(tmp_path)
    arguments = ["pipeline", "compact", str(tmp_path / "in"), str(tmp_path / "root"), "--quiet"]
    before = jobs()
    assert main(arguments) == 0
    assert f"{len(made)} segments with" in capsys.readouterr().out
    after = jobs()
    assert after > before
    assert main(arguments) == 0
    assert main([*arguments[:-2], str(tmp_path / "other"), "--quiet", "--jobs", "2"]) == 0
    assert jobs() == after
    assert Records(tmp_path / "other").segments == Records(tmp_path / "root").segments


def test_the_command_has_processes_or_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", "compact", str(tmp_path), str(tmp_path), "--jobs", "2", "--master", "local[2]"])
    assert ended.value.code == 2
    assert "--jobs is for processes of this machine" in capsys.readouterr().err


def test_a_disk_that_refuses_a_task_is_reported_as_such(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day(tmp_path)
    (tmp_path / "root" / "records").mkdir(parents=True)
    (tmp_path / "root" / "records" / "_staging").write_text("in the way")
    arguments = ["pipeline", "compact", str(tmp_path / "in"), str(tmp_path / "root"), "--quiet"]
    for more in (["--jobs", "1"], ["--master", "local[2]"]):
        assert main([*arguments, *more]) == 1
        assert f"{tmp_path / 'root' / 'records' / '_staging'}" in capsys.readouterr().err


def test_two_at_once_are_one_too_many(tmp_path: Path) -> None:
    day(tmp_path, connections=1)
    folder = tmp_path / "root" / "records"
    folder.mkdir(parents=True)
    with locked(folder / "_LOCK"), pytest.raises(TableBusy, match=f"process {os.getpid()} "):
        run(tmp_path)
    assert run(tmp_path).segments


def test_a_table_that_is_none_of_records_stops_everything(tmp_path: Path) -> None:
    day(tmp_path, connections=1)
    run(tmp_path)
    log = tmp_path / "root" / "records" / "_delta_log"
    (log / f"{1:020}.json").write_text("{")
    with pytest.raises(BadTable, match="_delta_log: "):
        run(tmp_path)
    shutil.rmtree(log)
    Folder(log.parent).create({"x": "string"}, ("x",))
    with pytest.raises(NoRecords, match="it is not divided by record"):
        run(tmp_path)


def marks(folder: Path) -> dict[str, Mark | None]:
    return {path.name: read_mark(path) for path in sorted((folder / "in").glob("*.compacted"))}


def test_marks_are_left_only_beside_compacted_segments(tmp_path: Path) -> None:
    made = day(tmp_path)
    made[2].write_bytes(made[2].read_bytes()[:-10])
    shutil.copy(made[1], made[1].with_name(made[1].name + ".open"))
    assert run(tmp_path).marked == 0
    assert marks(tmp_path) == {}
    summary = compact([tmp_path / "in"], tmp_path / "root", mark=True)
    assert (summary.segments, summary.marked) == (0, len(made) - 1)
    assert all(is_marked(path, path.name) == (path != made[2]) for path in made)
    assert compact([tmp_path / "in"], tmp_path / "root", mark=True).marked == 0


def test_a_shorter_segment_under_a_known_name_is_marked(tmp_path: Path) -> None:
    made = day(tmp_path)
    run(tmp_path)
    header, lines = lines_of(made[1])
    made[1].unlink()
    write_segment(tmp_path / "in", header, lines[:-1])  # only its end is lost
    summary = compact([tmp_path / "in"], tmp_path / "root", mark=True)
    assert (summary.errors, summary.marked) == ([], len(made))
    assert is_marked(made[1], made[1].name)


def test_a_folder_in_which_no_mark_can_be_left_is_reported_and_that_is_all(tmp_path: Path) -> None:
    made = day(tmp_path)
    (mark_path(made[0].parent, made[0].name) / "something").mkdir(parents=True)
    summary = compact([tmp_path / "in"], tmp_path / "root", mark=True)
    assert (summary.segments, summary.errors) == (len(made), [])
    assert summary.notes == [f"{tmp_path / 'in'}: cannot write marks beside the segments: Is a directory"]


def test_a_run_killed_between_the_commit_and_the_marks_leaves_the_marks_next_time(tmp_path: Path) -> None:
    made = day(tmp_path)
    killed = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom trouter_pipeline import compact\n"
        "left = []\ndef write_mark(*told, really=compact.write_mark):\n"
        "    len(left) < 2 or os.kill(os.getpid(), signal.SIGKILL)\n"
        "    left.append(told)\n    return really(*told)\n"
        "compact.write_mark = write_mark\ncompact.compact([Path(sys.argv[1])], Path(sys.argv[2]), mark=True)\n"
    )
    program = [sys.executable, "-c", killed, str(tmp_path / "in"), str(tmp_path / "root")]
    assert subprocess.run(program, check=False).returncode == -signal.SIGKILL
    assert len(Records(tmp_path / "root").segments) == len(made)
    assert len(marks(tmp_path)) == 2
    summary = compact([tmp_path / "in"], tmp_path / "root", mark=True)
    assert (summary.segments, summary.marked) == (0, len(made) - 2)


def test_a_router_deletes_marked_segments_and_no_record_is_missing(tmp_path: Path) -> None:
    made = day(tmp_path)
    size = sum(path.stat().st_size for path in made)
    spoilt = made[0].read_bytes()
    made[0].write_bytes(spoilt[:-10])  # so that it is not compacted, and the router keeps it
    assert main(["pipeline", "compact", str(tmp_path / "in"), str(tmp_path / "root"), "--jobs", "1", "--mark"]) == 1
    made[0].write_bytes(spoilt)
    bounds = Bounds(max_bytes=size + 20_000, segment_bytes=10_000)
    writer = SegmentWriter(tmp_path / "in", "QDR.A", bounds)
    writer.open(Now(START + DAY, 0))
    writer.write(
        Taken([ClockStep(old_offset=0, new_offset=each, t=START + DAY) for each in range(1000)], Counter()),
        Now(START + DAY, 1),
    )
    writer.close(Now(START + DAY, 2))
    assert made[0].exists()
    assert not made[1].exists()
    assert run(tmp_path).gaps == []
    assert check_folder(tmp_path / "in").errors == []


def test_the_command_prints_damage_gaps_and_totals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = day(tmp_path)
    made[1].unlink()
    made[3].write_bytes(made[3].read_bytes()[:-10])
    arguments = ["pipeline", "compact", str(tmp_path / "in"), str(tmp_path / "root"), "--jobs", "1"]
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert f"{made[3]}: byte" in captured.err
    assert "missing: 100-199 of QDR.A" in captured.err
    assert f"{len(made) - 2} segments with" in captured.out
    assert main([*arguments, "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert (printed["segments"], printed["known"], len(printed["gaps"])) == (0, len(made) - 2, 2)
    assert main(["pipeline", "compact", str(tmp_path / "nowhere"), str(tmp_path / "root")]) == 1
    assert f"{tmp_path / 'nowhere'}: No such file" in capsys.readouterr().err
