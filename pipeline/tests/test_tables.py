"""A table changes a day at a time and atomically; each version names its inputs, and writers notice each other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from subprocess import PIPE
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.house.sources import ROOT
from trouter_pipeline.delta import BadTable, Folder
from trouter_pipeline.files import TableBusy
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.one_twin

FIRST, SECOND, THIRD = date(2026, 3, 1), date(2026, 3, 2), date(2026, 3, 3)
SCHEMA = pa.schema({"date": pa.date32(), "value": pa.int64()})


def frame(spark: SparkSession, *rows: tuple[date, int]) -> DataFrame:
    return spark.createDataFrame(list(rows), "date date, value bigint")


def arrow(*rows: tuple[date, int]) -> pa.Table:
    return pa.Table.from_pylist([{"date": day, "value": value} for day, value in rows], SCHEMA)


def commit(table: Table, rows: Any, days: Iterable[date], **inputs: int) -> Any:
    return table.commit(rows, set(days), inputs=inputs, job="test", version=3, parameters={"a": 1})


def values(spark: SparkSession, table: Table, days: Iterable[date] | None = None) -> list[tuple[date, int]]:
    return sorted((row["date"], row["value"]) for row in table.read(spark, days).collect())


def there(root: Path, at: int | datetime | None = None) -> list[tuple[date, int]]:
    """Return the rows of the table as a new reader sees them."""
    return sorted((row["date"], row["value"]) for row in Table(root, "t", at).rows().to_pylist())


def log_of(root: Path) -> list[Path]:
    return sorted((root / "tables" / "t" / "_delta_log").glob("*.json"))


def test_days_are_replaced_others_stay_and_the_inputs_are_known(spark: SparkSession, tmp_path: Path) -> None:
    table = Table(tmp_path, "t")
    assert table.inputs() == {}
    with pytest.raises(BadTable, match="this table is empty"):
        table.read(spark)
    commit(table, frame(spark, (FIRST, 1), (SECOND, 2), (THIRD, 3)), [FIRST, SECOND, THIRD], a=1)
    first = values(spark, table)
    assert first == [(FIRST, 1), (SECOND, 2), (THIRD, 3)]
    held = table.read(spark)  # by a reader that began before
    commit(table, frame(spark, (SECOND, 20)), [SECOND, THIRD], a=1, b=2)
    assert values(spark, table) == there(tmp_path) == [(FIRST, 1), (SECOND, 20)]
    assert values(spark, table, [SECOND]) == [(SECOND, 20)]
    assert sorted((row["date"], row["value"]) for row in held.collect()) == first
    assert there(tmp_path, 1) == first
    assert table.inputs() == {"a": 1, "b": 2}
    assert table.dates() == {FIRST, SECOND}
    made = table.last_commit()
    assert made is not None
    assert (made.job, made.job_version, made.parameters) == ("test", 3, {"a": 1})
    commit(table, frame(spark), [SECOND])
    assert values(spark, table) == [(FIRST, 1)]
    assert list((Path(table.folder) / "_staging").iterdir()) == []


def test_other_programs_read_the_same_version_and_its_history(tmp_path: Path) -> None:
    table = Table(tmp_path, "t")
    for number, rows in enumerate((arrow((FIRST, 1), (SECOND, 2)), arrow((SECOND, 3))), 1):
        commit(table, rows.append_column("name", pa.array(["x"] * rows.num_rows)), rows["date"].to_pylist(), a=number)
    uri = str(table.folder)
    for number, wanted in ((1, [(FIRST, 1), (SECOND, 2)]), (2, [(FIRST, 1), (SECOND, 3)])):
        delta = DeltaTable(uri, version=number)
        frame = pl.scan_delta(uri, version=number).select("date", "value").collect()
        assert sorted(frame.rows()) == wanted
        asked = duckdb.from_arrow(delta.to_pyarrow_dataset())
        assert sorted(asked.select("date", "value").fetchall()) == wanted
        assert len(asked.filter("name = 'x' and value > 0").fetchall()) == 2  # text has no bounds in the log
    last = DeltaTable(uri).history(1)[0]
    assert last["userMetadata"] == "trouter test, version 3"
    assert last["trouter"]["inputs"] == 1
    assert Table(tmp_path, "t").inputs() == {"a": 2}


def test_rows_of_a_day_that_is_not_to_be_replaced_change_nothing(tmp_path: Path) -> None:
    table = Table(tmp_path, "t")
    commit(table, arrow((FIRST, 1)), [FIRST])
    files = set(Path(table.folder).rglob("*.parquet"))
    with pytest.raises(BadTable, match="rows of 2026-03-02"):
        commit(table, arrow((FIRST, 5), (SECOND, 2)), [FIRST])
    with pytest.raises(BadTable, match=r"no column `date`"):
        commit(table, arrow().drop_columns(["date"]), [FIRST])
    assert there(tmp_path) == [(FIRST, 1)]
    assert set(Path(table.folder).rglob("*.parquet")) == files


@pytest.mark.parametrize("begun", [False, True])
def test_of_two_writers_at_once_the_second_is_told_to_begin_again(tmp_path: Path, *, begun: bool) -> None:
    if begun:
        commit(Table(tmp_path, "t"), arrow((FIRST, 0)), [FIRST])
    one, other = Table(tmp_path, "t"), Table(tmp_path, "t")
    assert (one.last_commit() is None) == (other.last_commit() is None) == (not begun)
    commit(one, arrow((SECOND, 1)), [SECOND], a=1)
    with pytest.raises(TableBusy, match=r"changed meanwhile, by version \d: .*begin again"):
        commit(other, arrow((SECOND, 2)), [SECOND], b=1)
    assert there(tmp_path)[-1] == (SECOND, 1)
    assert len(list(Path(one.folder).rglob("*.parquet"))) == 1 + begun
    other.refresh()
    commit(other, arrow((SECOND, 2)), [SECOND], b=1)
    assert there(tmp_path)[-1] == (SECOND, 2)


RACING = """
import sys
from pipeline.tests.test_tables import *
number = int(sys.argv[2])
done = busy = 0
while done < 10:
    table = Table(Path(sys.argv[1]), "t")
    counted = table.inputs().get("count", 0)
    before = sum(row["value"] for row in table.rows().to_pylist()) if table.last_commit() else 0
    assert before == counted, (before, counted)
    try:
        commit(table, arrow((FIRST, counted + 1)), [FIRST], count=counted + 1)
        done += 1
    except TableBusy:
        busy += 1
"""


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    """Each adds one to what it has read, ten times, and begins again where another was faster."""
    words = [sys.executable, "-c", RACING, str(tmp_path)]
    racing = [subprocess.Popen([*words, str(number)], cwd=ROOT) for number in range(3)]
    assert [process.wait() for process in racing] == [0, 0, 0]
    assert there(tmp_path) == [(FIRST, 30)]
    assert len(log_of(tmp_path)) == 31


CREATING = """
import sys
from pipeline.tests.test_tables import *
print(flush=True)
for line in sys.stdin:
    Folder(Path(line.strip())).create({"value": "long", "date": "date"}, ["date"])
    print(flush=True)
"""


def test_processes_that_create_a_table_at_once_create_one_version(tmp_path: Path) -> None:
    creating = [
        subprocess.Popen([sys.executable, "-c", CREATING], cwd=ROOT, stdin=PIPE, stdout=PIPE, text=True, bufsize=1)
        for _ in range(3)
    ]
    for process in creating:
        assert process.stdout is not None
        process.stdout.readline()
    for number in range(20):
        for process in creating:
            assert process.stdin is not None
            process.stdin.write(f"{tmp_path / str(number)}\n")
        for process in creating:
            assert process.stdout is not None
            assert process.stdout.readline() == "\n"
    for process in creating:
        process.communicate()
    logs = [
        sorted(path.name for path in (tmp_path / str(number) / "_delta_log").glob("*.json")) for number in range(20)
    ]
    assert logs == [[f"{0:020}.json"]] * 20


def test_a_clock_that_steps_back_changes_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trouter_pipeline.delta.time.time", lambda: 2_000_000_000.0)
    commit(Table(tmp_path, "t"), arrow((FIRST, 1)), [FIRST], a=1)
    monkeypatch.setattr("trouter_pipeline.delta.time.time", lambda: 1_000_000_000.0)
    commit(Table(tmp_path, "t"), arrow((FIRST, 2), (SECOND, 3)), [FIRST, SECOND], a=2)
    monkeypatch.undo()
    assert there(tmp_path) == [(FIRST, 2), (SECOND, 3)]
    assert Table(tmp_path, "t").inputs() == {"a": 2}
    Folder(tmp_path / "tables" / "t").vacuum(1, really=True)
    assert there(tmp_path) == [(FIRST, 2), (SECOND, 3)]


def test_what_another_program_changes_elsewhere_excludes_no_commit(tmp_path: Path) -> None:
    table = Table(tmp_path, "t")
    commit(table, arrow((FIRST, 1), (FIRST, 2)), [FIRST])
    table.last_commit()
    DeltaTable(str(table.folder)).alter.set_table_properties({"delta.checkpointInterval": "7"})
    commit(table, arrow((SECOND, 3)), [SECOND], a=1)
    assert there(tmp_path) == [(FIRST, 1), (FIRST, 2), (SECOND, 3)]
    DeltaTable(str(table.folder)).delete("value = 3")
    with pytest.raises(TableBusy, match="it changed 2026-03-02"):
        commit(table, arrow((SECOND, 4)), [SECOND])
    assert Table(tmp_path, "t").inputs() == {"a": 1}  # of our last commit


def test_a_batch_of_a_stream_is_committed_once(tmp_path: Path) -> None:
    table = Table(tmp_path, "t")
    given: dict[str, Any] = {"inputs": {}, "job": "test", "version": 1, "parameters": {}}
    table.commit(arrow((FIRST, 1)), [FIRST], batch=("query", 0), **given)
    table.commit(arrow((FIRST, 2)), [FIRST], batch=("query", 0), **given)
    assert there(tmp_path) == [(FIRST, 1)]
    table.commit(arrow((FIRST, 2)), [FIRST], batch=("query", 1), **given)
    table.commit(arrow((FIRST, 3)), [FIRST], batch=("another", 0), **given)
    assert there(tmp_path) == [(FIRST, 3)]
    assert len(list(Path(table.folder).rglob("*.parquet"))) == 3


def test_other_columns_replace_the_table_and_not_a_part_of_it(tmp_path: Path) -> None:
    table = Table(tmp_path, "t")
    commit(table, arrow((FIRST, 1), (SECOND, 2)), [FIRST, SECOND])
    other = pa.table({"date": pa.array([FIRST], pa.date32()), "name": ["x"]})
    with pytest.raises(BadTable, match="some days have other columns"):
        commit(table, other, [FIRST])
    commit(table, other, [FIRST, SECOND], b=1)
    assert Table(tmp_path, "t").rows().to_pylist() == [{"name": "x", "date": FIRST}]
    assert there(tmp_path, 1) == [(FIRST, 1), (SECOND, 2)]


def test_other_columns_replace_only_the_version_that_was_seen(tmp_path: Path) -> None:
    """Else they would remove rows that came meanwhile, on whatever day."""
    table = Table(tmp_path, "t")
    commit(table, arrow((FIRST, 1)), [FIRST])
    stale = Table(tmp_path, "t")
    assert stale.inputs() == {}
    write_deltalake(str(table.folder), arrow((THIRD, 3)), mode="append")
    other = pa.table({"date": pa.array([FIRST], pa.date32()), "name": ["x"]})
    with pytest.raises(TableBusy, match="was changed meanwhile, by version 2: it changed 2026-03-03"):
        commit(stale, other, [FIRST])
    assert there(tmp_path) == [(FIRST, 1), (THIRD, 3)]


def test_a_version_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    commit(Table(tmp_path, "t"), arrow((FIRST, 1)), [FIRST])
    with pytest.raises(BadTable, match="there is no version 9; the last is 1"):
        there(tmp_path, 9)
    with pytest.raises(BadTable, match="there was no version yet at 2020"):
        there(tmp_path, datetime(2020, 1, 1, tzinfo=UTC))
    assert there(tmp_path, datetime.now(UTC)) == [(FIRST, 1)]


def test_a_vacuum_deletes_what_no_version_of_the_last_hours_has(tmp_path: Path) -> None:
    table = Table(tmp_path, "t")
    commit(table, arrow((FIRST, 1)), [FIRST])
    (old,) = table.files()
    reader = Table(tmp_path, "t")
    reader.files()
    commit(table, arrow((FIRST, 2)), [FIRST])
    left = Path(table.folder) / "date=2026-03-01" / "part-of-a-killed-run.parquet"
    left.write_bytes(b"half")
    dead = Path(table.folder) / "_staging" / "dead"
    dead.mkdir()
    for path in (left, dead):
        os.utime(path, (0, 0))
    folder = Folder(table.folder)
    wanted = {"date=2026-03-01/part-of-a-killed-run.parquet", "_staging/dead"}
    assert set(folder.vacuum(1, really=False)) == wanted
    assert left.exists()
    assert set(folder.vacuum(1, really=True)) == wanted
    assert not left.exists()
    assert not dead.exists()
    assert reader.rows().num_rows == 1  # a reader of the former version goes on
    assert folder.vacuum(0, really=True) == [old.path]
    assert there(tmp_path) == [(FIRST, 2)]
    with pytest.raises(BadTable, match=re.escape(old.path) + ".*it may have been vacuumed"):
        reader.rows()


def test_files_that_other_programs_wrote_elsewhere_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """After an OPTIMIZE, and from folders whose names say nothing."""
    table = Table(tmp_path, "t")
    commit(table, arrow((FIRST, 1), (SECOND, 2)), [FIRST, SECOND])
    write_deltalake(str(table.folder), arrow((FIRST, 3), (SECOND, 4)), mode="append")
    DeltaTable(str(table.folder)).optimize.compact()
    wanted = [(FIRST, 1), (FIRST, 3), (SECOND, 2), (SECOND, 4)]
    assert there(tmp_path) == values(spark, Table(tmp_path, "t")) == wanted
    folder = Folder(table.folder)
    version = folder.version()
    assert version is not None
    (file,) = [each for each in version.files if each.partition == ("2026-03-02",)]
    place = Path(table.folder) / "Xy" / "part.parquet"
    place.parent.mkdir()
    Path(version.path(file)).rename(place)
    folder.commit(version, [file._replace(path="Xy/part.parquet")], [file], {}, shown="moved")
    table.refresh()
    assert there(tmp_path) == values(spark, table) == wanted
    assert values(spark, table, [SECOND]) == [(SECOND, 2), (SECOND, 4)]


def test_a_table_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "tables" / "t"), arrow((FIRST, 1)), partition_by=["date"])
    with pytest.raises(BadTable, match="is not one of the pipeline"):
        commit(Table(tmp_path, "t"), arrow((FIRST, 2)), [FIRST])


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (lambda log: log[1].unlink(), "a version is missing in the log"),
        (lambda log: log[2].write_bytes(log[2].read_bytes()[:99]), "_delta_log: .*[Jj]son"),
        (lambda log: newer(log, "fromTheFuture"), "fromTheFuture"),
        (lambda log: newer(log, "deletionVectors"), "this table has deletionVectors"),
    ],
    ids=["hole", "torn", "newer", "feature"],
)
def test_a_log_that_cannot_be_read_is_reported_with_its_place(
    tmp_path: Path, harm: Callable[[list[Path]], object], why: str
) -> None:
    table = Table(tmp_path, "t")
    commit(table, arrow((FIRST, 1)), [FIRST])
    commit(table, arrow((FIRST, 2)), [FIRST])
    harm(log_of(tmp_path))
    with pytest.raises(BadTable, match=why) as caught:
        there(tmp_path)
    assert str(table.folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def newer(log: list[Path], feature: str) -> None:
    """Append a version that requires a feature of readers."""
    features = {"readerFeatures": [feature], "writerFeatures": [feature]}
    action = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    log[-1].with_name(f"{len(log):020}.json").write_text(json.dumps(action) + "\n")


def test_a_version_that_the_disk_lost_before_it_was_acknowledged_is_empty(tmp_path: Path) -> None:
    table = Table(tmp_path, "t")
    commit(table, arrow((FIRST, 1)), [FIRST], a=1)
    commit(table, arrow((FIRST, 2)), [FIRST], a=2)
    log_of(tmp_path)[-1].write_bytes(b"")
    assert there(tmp_path) == [(FIRST, 1)]
    assert Table(tmp_path, "t").inputs() == {"a": 1}
    commit(Table(tmp_path, "t"), arrow((FIRST, 3)), [FIRST], a=3)
    assert there(tmp_path) == [(FIRST, 3)]


FULL = """
import resource, signal, sys, uuid
from datetime import timedelta
from pipeline.tests.test_tables import *
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
table = Table(Path(sys.argv[1]), "t")
table.last_commit()
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    days = [FIRST + timedelta(each) for each in range(int(sys.argv[3]))]
    names = [uuid.uuid4().hex for _ in range(int(sys.argv[4]))]
    commit(table, arrow(*((day, each) for day in days for each in range(100))), days, **dict.fromkeys(names, 1))
except (OSError, BadTable) as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("octets", "days", "inputs"), [(100, 1, 0), (6_000, 1, 1000), (6_000, 40, 0)], ids=["data", "state", "log"]
)
def test_a_disk_that_is_full_changes_nothing(tmp_path: Path, octets: int, days: int, inputs: int) -> None:
    table = Table(tmp_path, "t")
    commit(table, arrow((FIRST, 1)), [FIRST], a=1)
    words = [sys.executable, "-c", FULL, str(tmp_path), *map(str, (octets, days, inputs))]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "arge" in done.stdout, done  # File too large
    assert there(tmp_path) == [(FIRST, 1)]
    assert len(list(Path(table.folder).rglob("*.parquet"))) == 1
    commit(Table(tmp_path, "t"), arrow((FIRST, 2)), [FIRST])
    assert there(tmp_path) == [(FIRST, 2)]


STEPS = {
    "before the files": ("write", "before"),
    "after the files": ("write", "after"),
    "between the places": ("sync", "after"),
    "before the state": ("States.write", "before"),
    "after the state": ("States.write", "after"),
    "before the commit": ("_write", "before"),
    "after the commit": ("_write", "after"),
}
KILLED = """
import os, signal, sys
from pipeline.tests.test_tables import *
from trouter_pipeline import delta, state, tables
name, when = sys.argv[2:]
home = {"write": tables, "States.write": state}.get(name, delta)
for part in name.split(".")[:-1]:
    home = getattr(home, part)
name = name.rpartition(".")[2]
former = getattr(home, name)
def killing(*given, **named):
    if when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    former(*given, **named)
    os.kill(os.getpid(), signal.SIGKILL)
table = Table(Path(sys.argv[1]), "t")
table.last_commit()
setattr(home, name, killing)
commit(table, arrow((FIRST, 2), (SECOND, 3)), [FIRST, SECOND], a=2)
"""


@pytest.mark.parametrize("step", STEPS)
def test_a_writer_killed_at_any_step_leaves_one_version_or_the_other(tmp_path: Path, step: str) -> None:
    commit(Table(tmp_path, "t"), arrow((FIRST, 1)), [FIRST], a=1)
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), *STEPS[step]], cwd=ROOT, check=False)
    assert done.returncode == -9
    committed = step == "after the commit"
    assert there(tmp_path) == ([(FIRST, 2), (SECOND, 3)] if committed else [(FIRST, 1)])
    assert Table(tmp_path, "t").inputs() == {"a": 2 if committed else 1}
    commit(Table(tmp_path, "t"), arrow((FIRST, 4)), [FIRST, SECOND], a=4)
    assert there(tmp_path) == [(FIRST, 4)]
