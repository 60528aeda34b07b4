"""Merged tables: the end does not depend on order, repetition, kills or other writers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pipeline.tests.landed import read_with_duckdb
from pipeline.tests.stores import running
from trouter_pipeline.bodies import DEAD_LETTER_TYPE
from trouter_pipeline.changes import DELETED, Merge
from trouter_pipeline.delta import Folder
from trouter_pipeline.files import TableBusy
from trouter_pipeline.landing import DEAD, NotLanded, Part, columns_of_rows, landed
from trouter_pipeline.merging import Merging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = (
    f"address string, id bigint, change bigint, amount bigint, {DELETED} boolean, ingest_time timestamp, seq bigint"
)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BY_CHANGE = Merge(keys=["id"], sequence=["change"], buckets=3)


class Change(NamedTuple):
    """A change of the row ``id`` of a source."""

    address: str
    id: int
    change: int
    amount: int = 0
    deleted: bool = False
    hour: int = 0


def frame_of(spark: SparkSession, changes: Sequence[Change], dead: Sequence[Change] = ()) -> DataFrame:
    """Return changes as `changes_of` marks them, and others that are none."""
    rows = [
        (*each[:5], NOON + timedelta(hours=each.hour), number, each in dead)
        for number, each in enumerate([*changes, *dead])
    ]
    frame = spark.createDataFrame(rows, f"{COLUMNS}, {DEAD} boolean")
    return frame.selectExpr(
        "'spool' spool_id", "*", "cast(null as string) message_id", "cast(null as string) message_id_type",
        "date(ingest_time) date", f"cast(null as {DEAD_LETTER_TYPE.simpleString()}) dead_letter",
    )  # fmt: skip


def checkpoint(folder: Path, name: str = "q1") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metadata").write_text(json.dumps({"id": name}))
    return folder


@contextmanager
def merging_in(root: Path, frame: DataFrame, how: Merge = BY_CHANGE) -> Iterator[Merging]:
    """Give the claimed tables ``t`` for such changes."""
    merging = Merging(root, "t", how)
    with merging.held():
        merging.claim(checkpoint(root / "q1"), columns_of_rows(frame), {})
        yield merging


def land(spark: SparkSession, root: Path, *batches: Sequence[Change], how: Merge = BY_CHANGE) -> None:
    with merging_in(root, frame_of(spark, []), how) as merging:
        for number, changes in enumerate(batches):
            merging.land(frame_of(spark, changes), number)


def found(root: Path, name: str = "t", what: str = "address, id, change, amount") -> list[tuple[Any, ...]]:
    rows = read_with_duckdb(root, name, what)
    return sorted(("" if row[0] is None else row[0], *row[1:]) for row in rows)  # no source is null in a partition


def wanted(changes: Sequence[Change]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return the rows and the deletions that these changes end in, worked out one by one."""
    last: dict[tuple[str, int], Change] = {}
    for each in changes:
        known = last.setdefault((each.address, each.id), each)
        if (each.change, each.deleted, each.amount) > (known.change, known.deleted, known.amount):
            last[each.address, each.id] = each
    rows = [each[:4] for each in last.values() if not each.deleted]
    return sorted(rows), sorted(each[:3] for each in last.values() if each.deleted)


CHANGES = st.builds(
    Change,
    address=st.sampled_from(["e", "w/%41 b", ""]),
    id=st.integers(-3, 3),
    change=st.integers(0, 5),
    amount=st.integers(0, 2),
    deleted=st.booleans(),
    hour=st.integers(0, 3),
)
BATCHES = st.lists(st.lists(CHANGES, max_size=30), min_size=1, max_size=3)


@pytest.mark.slow
@pytest.mark.pipeline_long
@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(batches=BATCHES, data=st.data())
def test_any_order_and_repetition_ends_in_the_same_table(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, batches: list[list[Change]], data: st.DataObject
) -> None:
    every = [each for batch in batches for each in batch]
    again = data.draw(st.lists(st.sampled_from(every), max_size=10) if every else st.just([]))
    mixed = data.draw(st.permutations([*every, *again]))
    rows, deleted = wanted(every)
    cut = data.draw(st.integers(0, len(mixed)))
    for ordered in (batches, [mixed[:cut], mixed[cut:]]):
        root = tmp_path_factory.mktemp("merged")
        land(spark, root, *ordered)
        assert found_any(root, "t") == rows_any(rows)
        assert found_any(root, "t_deleted", "address, id, change") == rows_any(deleted)


def found_any(root: Path, name: str, what: str = "address, id, change, amount") -> list[tuple[Any, ...]]:
    return rows_any(read_with_duckdb(root, name, what))


def rows_any(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return sorted rows, in which a source may be null."""
    return sorted((row[0] or "", *row[1:]) for row in rows)


def test_a_deletion_is_remembered_for_its_time_of_arrival(spark: SparkSession, tmp_path: Path) -> None:
    how = Merge(keys=["id"], sequence=["change"], buckets=1, keep_deleted_h=24)
    gone, other = Change("e", 1, 5, deleted=True), Change("w", 9, 1, hour=99)
    land(spark, tmp_path, [gone], [Change("e", 1, 4, hour=24), other], [Change("e", 2, 1, hour=25)],
         [Change("e", 1, 3, hour=26)], how=how)  # fmt: skip
    assert found(tmp_path) == [("e", 1, 3, 0), ("e", 2, 1, 0), ("w", 9, 1, 0)]
    version = DeltaTable(str(tmp_path / "tables" / "t"), version=2).to_pyarrow_table()
    assert version["id"].to_pylist() == [9]


def test_a_kill_at_each_step_leaves_a_version_from_which_the_batch_is_merged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = [Change("e", each, 1) for each in range(6)]
    second = [Change("e", 0, 2, deleted=True), Change("e", 1, 2, 7), Change("w", 1, 1), Change("e", 9, 1, deleted=True)]
    dead = [Change("e", 100, 100)]
    landed_first = tmp_path / "first"
    land(spark, landed_first, first)
    for step in count():
        root = tmp_path / str(step)
        copytree(landed_first, root)
        with monkeypatch.context() as patched, merging_in(root, frame_of(spark, [])) as merging:
            done = fail_after(patched, step)
            try:
                merging.land(frame_of(spark, second, dead), 1)
            except KeyboardInterrupt:
                ended = done[-1] == "commit of t"
                assert found(root) == (wanted([*first, *second])[0] if ended else sorted(each[:4] for each in first))
            else:
                break
        with merging_in(root, frame_of(spark, [])) as merging:
            merging.land(frame_of(spark, second, dead), 1)
            assert merging.land(frame_of(spark, first), 1) == {}
        rows, deleted = wanted([*first, *second])
        assert (found(root), found(root, "t_deleted", "address, id, change")) == (rows, deleted)
        assert found(root, "t_dead", "id") == [(100,)]
    assert len(done) == 6


def fail_after(patched: pytest.MonkeyPatch, step: int) -> list[str]:
    """Make a run end after the step of this number: files placed, or a commit; return the steps as made.

    Between two steps a run changes nothing on the disk but files that no version has, so it may as well end there.
    """
    done: list[str] = []

    def stepping(name: str) -> None:
        real = getattr(Folder, name)

        def step_and_fail(self: Folder, *given: Any, **named: Any) -> Any:
            made = real(self, *given, **named)
            done.append(f"{name} of {self.path.name}")
            if len(done) == step + 1:
                raise KeyboardInterrupt
            return made

        patched.setattr(Folder, name, step_and_fail)

    stepping("place")
    stepping("commit")
    return done


def test_changes_of_other_programs_meanwhile_are_merged_or_left_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of the same part are merged again with what another writer left; those of another source stay."""
    folder = str(tmp_path / "tables" / "t")
    with merging_in(tmp_path, frame_of(spark, [])) as merging:
        merging.land(frame_of(spark, [Change("e", each, 1) for each in range(9)] + [Change("w", 1, 1)]), 0)
        real, others = Folder.commit, iter(["id = 4", "address = 'w'"])

        def late(self: Folder, *given: Any, **named: Any) -> Any:
            if self.path.name == "t" and (where := next(others, "")):
                DeltaTable(folder).delete(where)
            return real(self, *given, **named)

        monkeypatch.setattr(Folder, "commit", late)
        merging.land(frame_of(spark, [Change("e", each, 2) for each in (0, 4, 8)]), 1)
    assert found(tmp_path) == [("e", each, 2 if each in {0, 4, 8} else 1, 0) for each in range(9)]
    facts = [each.get("trouter") for each in DeltaTable(folder).history(1)]
    assert facts == [{"job": "land", "merge": ["id"], "checkpoint": "q1", "batch": 1, "changes": {"e": 3}}]


def test_a_table_that_another_writer_changes_again_and_again_is_reported(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tables" / "t"
    with merging_in(tmp_path, frame_of(spark, [])) as merging:
        merging.land(frame_of(spark, [Change("e", 1, 1)]), 0)
        real = Folder.commit

        def late(self: Folder, *given: Any, **named: Any) -> Any:
            if self.path.name == "t":
                rows = DeltaTable(str(folder)).to_pyarrow_table()
                write_deltalake(str(folder), rows, mode="overwrite")
            return real(self, *given, **named)

        monkeypatch.setattr(Folder, "commit", late)
        with pytest.raises(TableBusy, match=r"t was changed meanwhile, by version \d+: it changed 1 of the parts"):
            merging.land(frame_of(spark, [Change("e", 1, 2)]), 1)
    assert found(tmp_path) == [("e", 1, 1, 0)]


def test_of_two_that_merge_the_same_batch_one_does(spark: SparkSession, tmp_path: Path) -> None:
    with merging_in(tmp_path, frame_of(spark, [])) as one:
        other = Merging(tmp_path, "t", BY_CHANGE)  # on another machine, where the lock is not seen
        other.claim(tmp_path / "q1", columns_of_rows(frame_of(spark, [])), {})
        assert one.land(frame_of(spark, [Change("e", 1, 1)], [Change("e", 5, 5)]), 0)[Part("e", True)] == 1
        other.land(frame_of(spark, [Change("e", 1, 1)], [Change("e", 5, 5)]), 0)
        other.land(frame_of(spark, [Change("e", 2, 1)]), 1)
    assert found(tmp_path) == [("e", 1, 1, 0), ("e", 2, 1, 0)]
    assert found(tmp_path, "t_dead", "id") == [(5,)]


def test_a_table_keeps_its_keys_and_its_number_of_parts(spark: SparkSession, tmp_path: Path) -> None:
    columns = columns_of_rows(frame_of(spark, []))
    folder = checkpoint(tmp_path / "q1")
    Merging(tmp_path, "t", BY_CHANGE).claim(folder, columns, {})
    Merging(tmp_path, "t", Merge(keys=["id"], sequence=["change"])).claim(folder, columns, {})
    for how, wrong in (
        (Merge(keys=["id", "amount"], sequence=["change"]), "with --merge id, and not with --merge id,amount: give"),
        (Merge(keys=["id"]), "with --sequence change, and not with --sequence ingest_time,seq: give"),
        (Merge(keys=["id"], sequence=["change"], buckets=4), "with --buckets 3, and not with --buckets 4: give"),
    ):
        with pytest.raises(NotLanded, match=wrong):
            Merging(tmp_path, "t", how).claim(folder, columns, {})
    with pytest.raises(NotLanded, match="was landed with another checkpoint than"):
        Merging(tmp_path, "t", BY_CHANGE).claim(checkpoint(tmp_path / "q2", "q2"), columns, {})


def test_a_table_in_an_object_store_is_merged_as_well(spark: SparkSession, tmp_path: Path) -> None:
    with running() as store:
        root = store.root("merged")
        merging = Merging(root, "t", BY_CHANGE)
        merging.claim(checkpoint(tmp_path), columns_of_rows(frame_of(spark, [])), {})
        first, second = [Change("e", 1, 1), Change("e", 2, 1)], [Change("e", 1, 2, deleted=True), Change("w", 1, 1)]
        for number, changes in enumerate((first, second, second)):
            merging.land(frame_of(spark, changes), min(number, 1))
        rows = [tuple(row) for row in landed(spark, root, "t").select("address", "id", "change", "amount").collect()]
        assert sorted(rows) == wanted([*first, *second])[0]


def test_changes_with_a_new_column_widen_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    with merging_in(tmp_path, frame_of(spark, [])) as merging:
        merging.land(frame_of(spark, [Change("a", 1, 1, 5), Change("a", 2, 1, 6)]), 0)
    newer = frame_of(spark, [Change("a", 1, 2, 7)]).selectExpr("*", "9 AS x")
    with pytest.raises(NotLanded, match="give --merge-schema"), merging_in(tmp_path, newer):
        pass
    merging = Merging(tmp_path, "t", BY_CHANGE, merge_schema=True)
    with merging.held():
        merging.claim(tmp_path / "q1", columns_of_rows(newer), {})
        merging.land(newer, 1)
    assert found(tmp_path, what="address, id, amount, x") == [("a", 1, 7, 9), ("a", 2, 6, None)]
