"""What a job has seen is beside its table, grows with what there is to know, and leaves with its version."""

from __future__ import annotations

import os
import zlib
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from trouter_pipeline.delta import BadTable
from trouter_pipeline.files import TableBusy
from trouter_pipeline.places import Place
from trouter_pipeline.state import State, States
from trouter_pipeline.tables import Table

pytestmark = pytest.mark.one_twin

DAY = date(2026, 3, 1)
ROWS = pa.table({"date": pa.array([DAY], pa.date32()), "value": [1]})
MADE_BY: dict[str, Any] = {"job": "test", "version": 1, "parameters": {}}


def states_of(table: Table) -> set[str]:
    return {path.name for path in (Path(table.folder) / "_state").iterdir()}


def test_inputs_are_added_changed_and_removed_and_written_again_as_they_double(tmp_path: Path) -> None:
    states = States(Place.of(tmp_path))
    wanted, before = dict[str, int](), State({}, [])
    sizes = []
    for step in range(200):
        changes: dict[str, int | None] = {f"segment-{step:03}": step}
        if step % 3 == 2:
            changes |= {f"segment-{step // 3:03}": None, f"segment-{step - 1:03}": 1_000_000 + step}
        for name, checksum in changes.items():
            wanted.pop(name, None)
            if checksum is not None:
                wanted[name] = checksum
        number = states.write({"step": step}, before, changes)
        before = states.read(number)
        assert before.facts == {"step": step}
        assert states.inputs(before) == wanted
        sizes.append([part.count for part in before.parts])
    assert max(map(len, sizes)) <= 8  # of 2 ** 8 > 200
    assert sum(sizes[-1]) <= 2 * len(wanted)
    assert states.read(states.write({}, before, {})).parts == before.parts
    assert states.inputs(states.read(states.write({}, before, dict.fromkeys(wanted, None)))) == {}


class Uncompared(dict[str, int]):
    """Inputs that a commit may not compare with others."""

    def items(self) -> Any:
        raise AssertionError("a commit that knows what has changed compares all inputs")


def test_a_commit_that_is_told_what_has_changed_compares_nothing_and_stores_the_same(tmp_path: Path) -> None:
    told, compared = (Table(tmp_path, name) for name in ("told", "compared"))
    inputs = {f"segment-{number}": number for number in range(100)}
    for step in range(3):
        inputs = {name: value for name, value in inputs.items() if value != step} | {"segment-50": 1000 + step}
        inputs |= {f"new-{step}": step}
        changes = told.changes_to(inputs)
        assert len(changes) == (100 if step == 0 else 3)
        told.commit(ROWS, [DAY], inputs=Uncompared(inputs), changes=changes, **MADE_BY)
        compared.commit(ROWS, [DAY], inputs=inputs, **MADE_BY)
        assert Table(tmp_path, "told").inputs() == Table(tmp_path, "compared").inputs() == inputs


def aged(folder: Path, hours: int) -> None:
    """Let hours go by for the files of a table."""
    for path in [*(folder / "_delta_log").iterdir(), *(folder / "_state").iterdir()]:
        changed = path.stat().st_mtime - hours * 3600
        os.utime(path, (changed, changed))


def octets(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def test_ten_thousand_commits_leave_a_log_that_does_not_grow_and_a_state_of_what_there_is_to_know(
    tmp_path: Path,
) -> None:
    """A job of every second hour sees sixty more segments each time, and versions are kept for a day.

    What comes from one measure to the next is what comes in the same number of commits later.
    """
    at, every = (60, 120), 60
    inputs = {"first": 0}
    Table(tmp_path, "t").commit(ROWS, [DAY], inputs=inputs, **MADE_BY)
    folder = tmp_path / "tables" / "t"
    day = {"delta.logRetentionDuration": "interval 1 days", "delta.deletedFileRetentionDuration": "interval 0 days"}
    DeltaTable(str(folder)).alter.set_table_properties(day)
    logs, states, heads = [], [], []
    for commit in range(1, at[1] + 1):
        first = commit * every
        inputs |= {f"R1-1772323200-{n:012}.jsonl.zst": zlib.crc32(b"%d" % n) for n in range(first, first + every)}
        Table(tmp_path, "t").commit(ROWS, [DAY], inputs=inputs, **MADE_BY)
        aged(folder, 2)
        if commit in at:
            logs.append(octets(folder / "_delta_log"))
            states.append(octets(folder / "_state"))
            heads.append(len(list((folder / "_state").glob("*.json"))))
    assert logs[1] < 1.1 * logs[0]
    assert heads[1] <= heads[0] < 50
    after_ten_thousand = states[1] + (states[1] - states[0]) / (at[1] - at[0]) * 10_000
    assert after_ten_thousand < 20 * 10_000 * every  # less than twenty bytes for a segment, once
    assert Table(tmp_path, "t").inputs() == inputs
    table = DeltaTable(str(folder))
    assert len(list((folder / "_delta_log").glob("*.json"))) < 50
    assert (folder / "_delta_log" / "_last_checkpoint").exists()
    assert len(str(table.history(1)[0]["trouter"])) < 200


def test_a_version_of_the_log_keeps_its_state_and_others_leave(tmp_path: Path) -> None:
    table = Table(tmp_path, "t")
    for number in range(18):
        table.commit(ROWS, [DAY], inputs={str(number): number}, **MADE_BY)
    left = Path(table.folder) / "_state" / "left-by-a-killed-run.inputs"
    left.write_bytes(b"")
    (Path(table.folder) / "_state" / "17.json").write_text("{}")  # so did this one
    aged(Path(table.folder), 24 * 40)
    assert len(states_of(table)) > 20
    for number in (18, 19):  # which writes a checkpoint, and cleans the log
        table.commit(ROWS, [DAY], inputs={str(number): number}, **MADE_BY)
    log = sorted((Path(table.folder) / "_delta_log").glob("*.json"))
    assert [path.stem for path in log] == [f"{19:020}", f"{20:020}"]
    assert Table(tmp_path, "t", 19).inputs() == {"18": 18}
    assert table.inputs() == {"19": 19}
    assert not left.exists()
    assert len(states_of(table)) == 2 * 2  # of the two commits of this day


def test_a_job_that_is_refused_leaves_no_state(tmp_path: Path) -> None:
    table = Table(tmp_path, "t")
    table.commit(ROWS, [DAY], inputs={"a": 1}, **MADE_BY)
    stale = Table(tmp_path, "t")
    assert stale.inputs() == {"a": 1}
    table.commit(ROWS, [DAY], inputs={"a": 1, "b": 2}, **MADE_BY)
    before = states_of(table)
    with pytest.raises(TableBusy):
        stale.commit(ROWS, [DAY], inputs={"a": 1, "c": 3}, **MADE_BY)
    assert states_of(table) == before
    assert Table(tmp_path, "t").inputs() == {"a": 1, "b": 2}


def test_a_state_stays_when_other_programs_commit_and_the_log_is_cleaned(tmp_path: Path) -> None:
    table = Table(tmp_path, "t")
    table.commit(ROWS, [DAY], inputs={"a": 1, "b": 2}, **MADE_BY)
    other = DeltaTable(str(table.folder))
    other.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 seconds"})
    for number in range(3):
        other.alter.set_table_properties({"delta.appendOnly": str(bool(number % 2)).lower()})
    other.create_checkpoint()
    other.cleanup_metadata()
    assert not (Path(table.folder) / "_delta_log" / f"{1:020}.json").exists()
    again = Table(tmp_path, "t")
    assert again.inputs() == {"a": 1, "b": 2}
    again.commit(ROWS, [DAY], inputs={"a": 1, "c": 3}, **MADE_BY)
    assert Table(tmp_path, "t").inputs() == {"a": 1, "c": 3}


@pytest.mark.parametrize("suffix", ["json", "inputs"])
@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(b"PAR1")], ids=["gone", "torn"])
def test_a_state_that_is_damaged_is_named_with_the_cure(tmp_path: Path, suffix: str, harm: Any) -> None:
    table = Table(tmp_path, "t")
    table.commit(ROWS, [DAY], inputs={"a": 1}, **MADE_BY)
    (path,) = (Path(table.folder) / "_state").glob(f"*.{suffix}")
    harm(path)
    with pytest.raises(BadTable, match="or move the table away and run its job again") as caught:
        Table(tmp_path, "t").last_commit()
    assert str(path) in str(caught.value)
