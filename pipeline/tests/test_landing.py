"""Landed tables: a batch is complete or absent, exists once, and belongs to the stream that began the table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from pipeline.tests.landed import read_with_duckdb
from tests.tools.live import status_of
from trouter_pipeline.changes import Merge
from trouter_pipeline.checkpoints import position_of
from trouter_pipeline.commands.land import _print as print_summary
from trouter_pipeline.commands.land import _print_again as print_again
from trouter_pipeline.delta import Folder
from trouter_pipeline.files import TableBusy
from trouter_pipeline.jobs.land import Parameters, Summary, check_whole, check_writable, wanted
from trouter_pipeline.jobs.land_again import Summary as Again
from trouter_pipeline.landing import DEAD, Identity, Landing, NotLanded, Part, columns_of_rows, landed
from trouter_pipeline.reasons import STACK_CURE, reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def rows(spark: SparkSession, *ids: int, dead: bool = False, address: str = "a/b c") -> DataFrame:
    frame = spark.createDataFrame([(each,) for each in ids], "id bigint")
    return frame.selectExpr("id", f"'{address}' address", "date'2026-01-31' date", f"{str(dead).lower()} {DEAD}")


def checkpoint(folder: Path, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "metadata").write_text(json.dumps({"id": name}))
    return folder


@contextmanager
def landing_in(root: Path, frame: DataFrame, query: str = "q1", *, merge_schema: bool = False) -> Iterator[Landing]:
    """Give the claimed tables ``t`` for rows such as ``frame``."""
    landing = Landing(root, "t", merge_schema=merge_schema)
    with landing.held():
        landing.claim(checkpoint(root / query, query), columns_of_rows(frame), {})
        yield landing


def test_a_batch_that_comes_again_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    both = rows(spark, 1, 2).union(rows(spark, 3, dead=True))
    with landing_in(tmp_path, both) as landing:
        assert landing.land(both, 7) == {Part("a/b c", False): 2, Part("a/b c", True): 1}
        assert landing.land(rows(spark, 1, 2, 99), 7) == {}
    with landing_in(tmp_path, both) as landing:
        assert landing.land(rows(spark, 1, 2, 99), 7) == {}
        assert landing.batches() == {"q1": 7}
    assert sorted(read_with_duckdb(tmp_path, "t", "id, address, date")) == [
        (1, "a/b c", date(2026, 1, 31)),
        (2, "a/b c", date(2026, 1, 31)),
    ]
    assert read_with_duckdb(tmp_path, "t_dead", "id") == [(3,)]
    assert not list((tmp_path / "tables" / "t" / "_staging").iterdir())
    told = DeltaTable(str(tmp_path / "tables" / "t")).history(1)[0]["trouter"]
    assert told == {"job": "land", "checkpoint": "q1", "batch": 7, "rows": {"a/b c": 2}}


def test_a_crash_between_the_two_tables_is_made_good(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = rows(spark, 1).union(rows(spark, 2, dead=True))
    commit = Folder.commit

    def failing(self: Folder, *given: Any, **named: Any) -> Any:
        if self.path.name == "t":
            raise KeyboardInterrupt
        return commit(self, *given, **named)

    with landing_in(tmp_path, both) as landing:
        monkeypatch.setattr(Folder, "commit", failing)
        with pytest.raises(KeyboardInterrupt):
            landing.land(both, 0)
        monkeypatch.undo()
    assert read_with_duckdb(tmp_path, "t_dead", "id") == [(2,)]
    assert read_with_duckdb(tmp_path, "t", "id") == []
    with landing_in(tmp_path, both) as landing:
        landing.land(both, 0)
    assert read_with_duckdb(tmp_path, "t", "id") == [(1,)]
    assert read_with_duckdb(tmp_path, "t_dead", "id") == [(2,)]


def test_of_two_that_land_the_same_batch_one_does(spark: SparkSession, tmp_path: Path) -> None:
    both = rows(spark, 1).union(rows(spark, 2, dead=True))
    with landing_in(tmp_path, both) as one:
        other = Landing(tmp_path, "t")  # on another machine, where the lock is not seen
        other.claim(tmp_path / "q1", columns_of_rows(both), {})
        one.land(both, 0)
        other.land(both, 0)
        other.land(rows(spark, 3), 1)
    assert sorted(read_with_duckdb(tmp_path, "t", "id")) == [(1,), (3,)]
    assert read_with_duckdb(tmp_path, "t_dead", "id") == [(2,)]


def test_files_of_a_killed_run_are_never_read(spark: SparkSession, tmp_path: Path) -> None:
    with landing_in(tmp_path, rows(spark, 1)) as landing:
        left = Path(landing.folder) / "address=a" / "date=2026-01-31"
        left.mkdir(parents=True)
        (left / "part.parquet").write_bytes(b"half of it")
        landing.land(rows(spark, 1), 0)
    assert read_with_duckdb(tmp_path, "t", "id") == [(1,)]
    assert [row["id"] for row in landed(spark, tmp_path, "t").collect()] == [1]


def test_new_columns_are_added_and_missing_ones_are_null(spark: SparkSession, tmp_path: Path) -> None:
    former = rows(spark, 1)
    with landing_in(tmp_path, former) as landing:
        landing.land(former, 0)
    for number, frame in enumerate((rows(spark, 2).selectExpr("*", "5 AS x"), rows(spark, 3)), 1):
        with landing_in(tmp_path, frame, merge_schema=True) as landing:
            landing.land(frame, number)
    wanted = [(1, None), (2, 5), (3, None)]
    assert sorted(read_with_duckdb(tmp_path, "t", "id, x")) == wanted
    assert sorted(map(tuple, landed(spark, tmp_path, "t").select("id", "x").collect())) == wanted
    changed = rows(spark, 4).selectExpr("*", "'5' AS x")
    refused = pytest.raises(NotLanded, match=r"t has x integer, not x string, and a column keeps its type: ")
    with refused, landing_in(tmp_path, changed, merge_schema=True):
        pass


def test_a_table_has_one_landing_run_at_a_time(tmp_path: Path) -> None:
    with Landing(tmp_path, "t").held(), pytest.raises(TableBusy), Landing(tmp_path, "t").held():
        pass


def test_a_table_belongs_to_its_checkpoint_and_keeps_its_columns(tmp_path: Path) -> None:
    first, second = checkpoint(tmp_path / "first", "q1"), checkpoint(tmp_path / "second", "q2")
    columns = {"id": "long", "address": "string", "date": "date"}
    landing = Landing(tmp_path, "t")
    assert landing.identity() is None
    with landing.held():
        landing.claim(first, columns, {})
        landing.claim(first, columns, {})
        assert landing.identity() == Identity("q1", {})
        with pytest.raises(NotLanded, match=r"was landed with another checkpoint than .*second"):
            landing.claim(second, columns, {})
        with pytest.raises(NotLanded, match=r"has id long, not id string, and a column keeps its type: .*--schema"):
            landing.claim(first, {**columns, "id": "string"}, {})
        (second / "metadata").write_text("v1")
        with pytest.raises(NotLanded, match="is no checkpoint of Spark's"):
            landing.claim(second, columns, {})
        for other, how in (
            ({**columns, "x": "long"}, "the rows have x long"),
            ({"id": "long"}, "the rows lack address"),
        ):
            with pytest.raises(NotLanded, match=rf"has the columns id long, .* and {how}.*: give --merge-schema"):
                landing.claim(first, other, {})
    Folder(tmp_path / "tables" / "x").create(columns, ("address", "date"))
    with pytest.raises(NotLanded, match="was not landed here: give another --name"):
        Landing(tmp_path, "x").claim(first, columns, {})


def test_an_unwritable_checkpoint_is_reported_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotLanded, match=r"the checkpoint .*file/x cannot be written: Not a directory"):
        check_writable(tmp_path / "file" / "x")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[X] ended: Traceback:\n  File ...\ntrouter.spool.errors.SpoolGap: it is gone\n SQLSTATE: 1", "it is gone"),
        ("[X] ended: Traceback:\n  File ...\nOSError: [Errno 28] full\nIdentifier: [id]", "OSError: [Errno 28] full"),
        ("[STREAM_FAILED] Query [id = 1] terminated with exception: no worker SQLSTATE\nName: x", "no worker SQLSTATE"),
        ("[CANNOT] do this\nat org.apache", "[CANNOT] do this"),
        ("\n[CANNOT] do this.\n\n== SQL ==", "[CANNOT] do this."),
        ("[X] terminated with exception: null\n\nJVM stacktrace:\njava.lang.StackOverflowError\n\tat java", STACK_CURE),
        ("An error occurred while calling o1.load.\n: org.apache.E: [BAD] file\n\tat org", "[BAD] file"),
    ],
)
def test_the_reason_is_found_in_a_message_of_spark(text: str, reason: str) -> None:
    assert reason_of(Exception(text)) == reason


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["--name", "../x"], "--name '../x' is no name of a table"),
        (["--body", "json"], "--body and --schema go together"),
        (["--body", "json", "--schema", "id bigint", "--avro-schema", "f"], "--avro-schema is for --body avro"),
        (["--every", "-1"], "--every is not negative"),
        (["--from-dead"], "give --spool, or --from-dead"),
    ],
)
def test_conflicting_options_are_reported_before_spark_starts(
    words: list[str], wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(["pipeline", "land", "--spool", "s", "--out", "o", *words]) == 2
    assert f"trouter pipeline land: {wrong}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "..", "../../x", "a/b", "/x", "a\n"])
def test_a_name_that_leads_out_of_the_folder_of_tables_is_none(name: str, tmp_path: Path) -> None:
    with pytest.raises(NotLanded, match="is no name of a table: letters"):
        Landing(tmp_path, name)


@pytest.mark.parametrize("merge", [None, Merge(keys=["id"], sequence=["rev"])])
def test_columns_that_differ_only_in_case_are_named(spark: SparkSession, merge: Merge | None) -> None:
    schema = "ID bigint, id bigint, rev bigint, Seq bigint"
    with pytest.raises(NotLanded, match="the columns ID and id, Seq and seq, whose names differ at most in case"):
        wanted(Parameters(spools=["s"], body_format="json", schema=schema, merge=merge))


def test_landed_rows_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    summary = Summary(duplicates=3)
    print_summary(summary, as_json=False)
    summary.add({Part("changes/east", False): 1500, Part("x", True): 2})
    print_summary(summary, as_json=False)
    print_summary(summary, as_json=True)
    assert capsys.readouterr().out.splitlines() == [
        "nothing new: all messages of the spools are landed, 3 duplicates left out",
        "source                rows  dead letters",
        "changes/east         1,500             0",
        "x                        0             2",
        "1,500 rows and 2 dead letters in 1 batches, 3 duplicates left out",
        '{"batches": 1, "duplicates": 3, "rows": {"changes/east": 1500}, "dead": {"x": 2}, "waiting": 0}',
    ]


@pytest.mark.parametrize(
    ("interrupted", "why"), [(True, "ended before its first batch was landed"), (False, "they came meanwhile")]
)
def test_nothing_new_is_said_only_if_nothing_waits(
    interrupted: bool, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_summary(Summary(left=200_000, interrupted=interrupted), as_json=False)
    said = f"nothing was landed: 200,000 messages wait in the spools ({why}): run again to land them"
    assert capsys.readouterr().out.splitlines() == [said]


def test_what_became_of_dead_letters_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    print_again(Again({"sales": 1500}, 2), "sales", as_json=False)
    print_again(Again({"sales": 1500}, 2), "sales", as_json=True)
    assert capsys.readouterr().out.splitlines() == [
        "sales: 1,500 dead letters are rows now",
        "2 dead letters are still not understood: sales_dead says why",
        '{"rows": {"sales": 1500}, "dead": 2}',
    ]


@pytest.mark.parametrize("option", ["--every", "--deduplicate", "--max-rows"])
def test_dead_letters_take_no_option_of_a_stream(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["pipeline", "land", "--from-dead", "--out", "o", option, "7"]) == 2
    assert f"{option} is not for --from-dead" in capsys.readouterr().err


def test_a_planned_batch_that_is_torn_is_named_with_the_cure(spark: SparkSession, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "checkpoint", "q1")
    for name, number in (("offsets", 0), ("commits", 0), ("offsets", 1)):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / str(number)).write_text('v1\n{}\n{"u": 5}' if number == 0 else "v1\n{")
    landing = Landing(tmp_path, "t")
    with pytest.raises(NotLanded, match=r"offsets/1 is not whole: .* Nothing of batch 1 was landed: delete the file"):
        check_whole(folder, landing)
    with landing_in(tmp_path, rows(spark, 1)) as held:
        for number in (0, 1):
            held.land(rows(spark, number), number)
    with pytest.raises(NotLanded, match=r"Batch 1 was landed, .* or land the spools under another --name"):
        check_whole(folder, landing)
    (folder / "offsets/1").write_text('v1\n{}\n{"u": 9}')
    check_whole(folder, landing)
    assert position_of(folder) == {"u": 5}
