"""Small files of a partition become one, while others land and read, and no row changes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from tests.house.sources import ROOT
from trouter.cli import main
from trouter_pipeline.delta import SMALL_FILES, Folder, columns_in
from trouter_pipeline.files import TableBusy
from trouter_pipeline.parquet import merged, write

pytestmark = pytest.mark.one_twin

DAYS = date(2026, 3, 1), date(2026, 3, 2)
MOVES = {"add", "remove"}
PRICE = pa.decimal128(38, 18)


def batch(number: int, day: date, **columns: Any) -> pa.Table:
    price = pa.array([Decimal(f"{number}.000000000000000001")], PRICE)
    days = pa.array([day], pa.date32())
    return pa.table({"id": [number], "price": price, "address": ["a/b c"], "date": days, **columns})


def add(folder: Folder, rows: pa.Table) -> None:
    with folder.staged() as staged:
        folder.commit(folder.last(), folder.place(staged, write(rows, staged, ("address", "date"))), [], {}, shown="")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Return a table with many small files of one day, and few of another; the last has a column of its own."""
    folder = Folder(tmp_path / "tables" / "t")
    folder.create(columns_in(batch(0, DAYS[0])), ("address", "date"))
    for number in range(SMALL_FILES + 2):
        add(folder, batch(number, DAYS[number >= SMALL_FILES - 1]))
    wider = batch(99, DAYS[0], more=[7])
    folder.widen(folder.last(), columns_in(wider))
    add(folder, wider)
    return folder


def rows_of(folder: Folder) -> list[tuple[Any, ...]]:
    """Return the rows as all programs find them."""
    uri = str(folder.path)
    data = DeltaTable(uri).to_pyarrow_dataset()
    with duckdb.connect() as session:
        found = session.register("data", data).sql("SELECT id, price, date, more FROM data ORDER BY id").fetchall()
    assert pl.scan_delta(uri).select("id", "price", "date", "more").sort("id").collect().rows() == found
    wanted = (pc.field("price") > pa.scalar(Decimal(60), PRICE)) & (pc.field("id") > 0)
    assert data.to_table(filter=wanted).num_rows == 1
    return found


def counts(folder: Folder) -> list[int]:
    files = folder.last().files
    return [sum(file.partition[1] == str(day) for file in files) for day in DAYS]


def test_many_small_files_of_a_day_become_one_and_few_stay(folder: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    before, former = rows_of(folder), folder.last()
    root = str(Path(folder.path).parents[1])
    assert counts(folder) == [SMALL_FILES, 3]
    assert main(["pipeline", "optimize", root]) == 0
    assert capsys.readouterr().out == f"t: {SMALL_FILES} small files are merged\n"
    assert counts(folder) == [1, 3]
    assert rows_of(folder) == before
    last = DeltaTable(str(folder.path)).history(1)[0]
    assert last["trouter"] == {"job": "optimize", "files": SMALL_FILES}
    log = Path(folder.path) / "_delta_log" / f"{former.number + 1:020}.json"
    moved = [
        change for line in log.read_text().splitlines() for key, change in json.loads(line).items() if key in MOVES
    ]
    assert [change["dataChange"] for change in moved] == [False] * (SMALL_FILES + 1)  # a stream reads no row twice
    assert [former.rows(file).num_rows for file in former.files] == [1] * len(former.files)
    assert main(["pipeline", "optimize", root]) == 0
    assert "few small files in 1 tables" in capsys.readouterr().out
    assert main(["pipeline", "optimize", root, "--json"]) == 0
    assert capsys.readouterr().out == '{"t": 0}\n'
    assert folder.last().number == former.number + 1


def test_moving_rows_does_not_hide_what_another_program_changed(folder: Folder) -> None:
    ours = folder.last()
    assert folder.changed_by_others(ours) is None
    DeltaTable(str(folder.path)).delete("id = 17")
    deleted = ours.number + 1, "DELETE", ours.number
    assert folder.changed_by_others(folder.last()) == deleted
    assert folder.optimize() == SMALL_FILES
    DeltaTable(str(folder.path)).optimize.compact()
    assert folder.changed_by_others(folder.last()) == deleted
    DeltaTable(str(folder.path)).restore(ours.number)
    assert folder.changed_by_others(folder.last()) is None
    assert folder.optimize() == SMALL_FILES
    assert folder.changed_by_others(folder.last()) is None


def while_merging(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen once files are merged and before that is committed."""

    def merging(*given: Any) -> Any:
        monkeypatch.undo()
        made = merged(*given)
        act()
        return made

    monkeypatch.setattr("trouter_pipeline.delta.merged", merging)


def test_what_lands_meanwhile_is_there_too(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    before = rows_of(folder)
    later = batch(50, DAYS[0])
    while_merging(monkeypatch, lambda: add(folder, later))
    assert folder.optimize() == SMALL_FILES
    assert counts(folder) == [2, 3]
    assert [row for row in rows_of(folder) if row[0] != 50] == before
    assert len(rows_of(folder)) == len(before) + 1


def test_of_two_that_merge_the_same_files_one_does(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    before = rows_of(folder)
    while_merging(monkeypatch, lambda: Folder(folder.path).optimize())
    with pytest.raises(TableBusy, match="files that are to be merged are gone; begin again"):
        folder.optimize()
    assert rows_of(folder) == before
    assert counts(folder) == [1, 3]
    assert (
        len(list(Path(folder.path).glob("address=*/date=*/*.parquet"))) == SMALL_FILES + 3 + 1
    )  # the refused one is deleted


KILLED = """
import os, signal, sys
from trouter_pipeline import delta
step = sys.argv[2]
former = delta._write
def killing(*given):
    if step == "after the commit":
        former(*given)
    os.kill(os.getpid(), signal.SIGKILL)
delta._write = killing
delta.Folder(sys.argv[1]).optimize()
"""


@pytest.mark.parametrize("step", ["before the commit", "after the commit"])
def test_a_merge_that_is_killed_changes_no_row(folder: Folder, step: str) -> None:
    before = rows_of(folder)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(folder.path), step], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert counts(folder) == ([1, 3] if step == "after the commit" else [SMALL_FILES, 3])
    assert rows_of(folder) == before
    folder.optimize()
    assert counts(folder) == [1, 3]
    assert rows_of(folder) == before
