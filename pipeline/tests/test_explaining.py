"""What a stage of the meter cost, and tables made of a former version of the records."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.bench.recorded import Records
from trouter.cli import main
from trouter_pipeline import datasets
from trouter_pipeline.compact import compact
from trouter_pipeline.jobs import meter
from trouter_pipeline.metering.costs import Cost, Costs, Usage
from trouter_pipeline.metering.engines import Engine, InProcess, OnSpark
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.one_twin

STAGES = ["sums", "runs", "doubtful", "odd", "suspects", "wanted", "found", "meter", "meter_conn", "meter_gaps"]
RECORDS = Records(links=100, steps=4, each=50)
MOVED = [sum(RECORDS.moved(link, step) for link in range(100)) for step in range(4)]


def stored(folder: Path, *segments: int) -> Path:
    """Compact these segments, of half a step each; return the folder of the pipeline."""
    for number in segments:
        (folder / "in").mkdir(exist_ok=True)
        RECORDS.write_one(folder / "in", number * RECORDS.each)
    assert compact([folder / "in"], folder / "root").errors == []
    return folder / "root"


def messages(root: Path) -> int:
    return sum(Table(root, meter.METER).rows()["msgs"].to_pylist())


def test_a_stage_costs_what_was_used_in_it_and_not_in_those_within() -> None:
    now, used = [0.0], Usage()

    def take() -> Usage:
        nonlocal used
        taken, used = used, Usage()
        return taken

    costs = Costs(take, lambda: now[0])

    def work(seconds: float, rows: int, most: int) -> None:
        now[0] += seconds
        used.add(Usage(rows, 1, 10, most))

    with costs.stage("outer"):
        work(1, 5, 100)
        with costs.stage("inner"):
            work(2, 7, 300)
        work(4, 6, 200)
    assert costs.known == [Cost("inner", 2, Usage(7, 1, 10, 300)), Cost("outer", 5, Usage(11, 2, 20, 200))]


def test_a_stage_that_fails_is_not_told(tmp_path: Path) -> None:
    costs = Costs(Usage)
    with costs.stage("outer"), pytest.raises(OSError, match="full"), costs.stage("inner"):
        raise OSError("full")
    assert [each.stage for each in costs.known] == ["outer"]


def explained(engine: Engine, root: Path) -> dict[str, Usage]:
    meter.run(engine, root, meter.Parameters(again=True))
    assert engine.costs is not None
    return {each.stage: each.used for each in engine.costs.known}


def check_costs(costs: dict[str, Usage], root: Path) -> None:
    """Check the costs of records of which one segment is lost."""
    assert list(costs) == STAGES
    assert costs["runs"].rows_in >= 350
    assert costs["runs"].rows_out == 200  # each of a hundred links has a run before the lost segment and one after it
    assert costs["found"].rows_out == costs["wanted"].rows_out == 100
    assert costs["meter"].rows_out == Table(root, meter.METER).rows().num_rows
    assert costs["runs"].most_bytes > 0


def test_duckdb_says_what_each_stage_cost(tmp_path: Path) -> None:
    root = stored(tmp_path, 0, 1, 2, 4, 5, 6, 7)
    check_costs(explained(InProcess(explain=True), root), root)


def test_a_record_is_read_to_prove_its_link_and_to_be_summed_and_only_those_near_a_gap_once_more(
    tmp_path: Path,
) -> None:
    records = Records(links=100, steps=20, each=100)
    (tmp_path / "in").mkdir()
    for number in range(20):
        if number != 17:
            records.write_one(tmp_path / "in", number * records.each)
            assert (
                compact([tmp_path / "in"], tmp_path / "root").errors == []
            )  # the last segments have files of their own
    costs = explained(InProcess(explain=True), tmp_path / "root")
    assert costs["found"].rows_out == 200  # before the lost segment and after it
    assert costs["sums"].rows_in == 1900
    assert 1900 <= costs["runs"].rows_in < 2000
    assert costs["found"].rows_in < 1900 / 2
    assert costs["meter"].rows_in < 1900


@pytest.mark.spark
def test_spark_says_what_each_stage_cost(tmp_path: Path, spark: SparkSession) -> None:
    root = stored(tmp_path, 0, 1, 2, 4, 5, 6, 7)
    costs = explained(OnSpark(spark, explain=True), root)
    check_costs(costs, root)
    assert costs["runs"].written_bytes > 0


@pytest.mark.spark
def test_a_plan_has_what_is_kept_and_not_what_that_was_made_of(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = OnSpark(spark)

    def lines_of_plan(name: str) -> int:
        engine.query(f"SELECT * FROM {name}").explain()
        return len(capsys.readouterr().out.splitlines())

    with engine.sized(1):
        assert engine.keep("first", "SELECT id FROM range(3)") == 3
        lines = lines_of_plan("first")
        for name in ("second", "third"):
            assert engine.keep(name, "SELECT id FROM first WHERE id IN (SELECT id FROM first WHERE id > 0)") == 2
            assert lines_of_plan(name) == lines
    assert not any(map(spark.catalog.tableExists, ("first", "second", "third")))


def test_the_costs_are_shown_in_place_of_the_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = stored(tmp_path, 0, 1)
    command = ["pipeline", "meter", str(root), "--engine", "duckdb", "--quiet", "--again", "--explain"]
    assert main(command) == 0
    title, heads, _, *rows = capsys.readouterr().out.splitlines()
    assert (title, heads.split()[:4]) == ("Stages", ["stage", "seconds", "rows_in", "rows_out"])
    stages = ["sums", "meter", "meter_conn", "meter_gaps"]
    assert [row.split()[0] for row in rows] == stages
    assert main([*command, "--json"]) == 0
    lines: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["stage"] for line in lines] == stages
    assert lines[0]["rows_in"] == 100


def test_a_job_reads_a_former_version_and_says_which(tmp_path: Path) -> None:
    root = stored(tmp_path, 0, 1)
    former = datasets.Records(root).version
    assert former is not None
    stored(tmp_path, 2, 3)
    last = datasets.Records(root).version
    assert last is not None
    command = ["pipeline", "meter", str(root), "--engine", "duckdb", "--quiet"]
    for options, count, version in (
        ([], sum(MOVED[:2]), last.number),
        (["--as-of", str(former.number)], MOVED[0], former.number),
        ([], sum(MOVED[:2]), last.number),
        (["--as-of", (datetime.now(UTC) + timedelta(hours=1)).isoformat()], sum(MOVED[:2]), last.number),
    ):
        assert main([*command, *options]) == 0
        commit = Table(root, meter.METER).last_commit()
        assert commit is not None
        assert (messages(root), commit.read) == (count, {"records": version})


@pytest.mark.parametrize(("version", "why"), [("99", "there is no version 99"), ("2001-01-01", "no version yet at")])
def test_a_version_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: str, why: str
) -> None:
    root = stored(tmp_path, 0)
    assert main(["pipeline", "meter", str(root), "--engine", "duckdb", "--quiet", "--as-of", version]) == 1
    assert why in capsys.readouterr().err
