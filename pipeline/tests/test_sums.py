"""Tables made from the meter agree with it; only days whose meter has changed are computed again."""

from __future__ import annotations

import argparse
import json
import random
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.tests.oracles import sums as oracle
from trouter_pipeline.commands import rollup as rollup_command
from trouter_pipeline.commands import top as top_command
from trouter_pipeline.progress import Progress
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.one_twin

MIDNIGHT = datetime(2026, 3, 1)  # noqa: DTZ001 - as Spark gives them where the session's time is UTC
SHAPE = (
    "hour timestamp, vhost string, user string, addr string, dir string, msgs bigint, bytes bigint, accepted bigint, "
    "rejected bigint, released bigint, modified bigint, presettled bigint, dropped bigint, undeliverable bigint, "
    "rows bigint, estimated_msgs bigint, complete boolean, date date"
)


def rows_of(day: int, chance: random.Random) -> list[dict[str, Any]]:
    """Return a day of a meter: some similar users, some without messages, some with incomplete rows."""
    rows = []
    for hour in range(0, 24, 8):
        at = MIDNIGHT + timedelta(days=day, hours=hour)
        for vhost in ("a", "b", None):
            for addr in ("x", "y", "z", None):
                row: dict[str, Any] = {
                    "hour": at,
                    "vhost": vhost,
                    "user": "u",
                    "addr": addr,
                    "dir": "in",
                    "date": at.date(),
                }
                row |= dict.fromkeys(oracle.SUMMED, 0)
                row |= {"msgs": chance.choice((0, 5, 5, 7)), "bytes": chance.randrange(100), "rows": 1}
                rows.append(row | {"complete": chance.random() < 0.9})
    return rows


def keep(spark: SparkSession, root: Path, rows: list[dict[str, Any]], *days: date) -> None:
    names = [part.split()[0] for part in SHAPE.split(", ")]
    frame = spark.createDataFrame([tuple(row[name] for name in names) for row in rows], SHAPE)
    Table(root, "meter").commit(frame, days, inputs={}, job="meter", version=1, parameters={})


def found(spark: SparkSession, root: Path, name: str) -> list[dict[str, Any]]:
    return [row.asDict() for row in Table(root, name).read(spark).collect()]


def test_sums_and_ranks_agree_with_the_meter(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from trouter_pipeline.jobs import rollup, top

    chance = random.Random(4)
    one, two = rows_of(0, chance), rows_of(1, chance)
    assert rollup.run(spark, tmp_path).nothing == top.run(spark, tmp_path).nothing
    keep(spark, tmp_path, one + two, date(2026, 3, 1), date(2026, 3, 2))

    by = ("vhost", "dir")
    assert len(rollup.run(spark, tmp_path, rollup.Parameters(by)).days) == 2
    for name, period in (("rollup_hour", "hour"), ("rollup_day", "day")):
        rows = found(spark, tmp_path, name)
        totals = {
            (row[period], *[row[each] for each in by]): (*[row[each] for each in oracle.SUMMED], row["quality"])
            for row in rows
        }
        assert totals == oracle.rollup(one + two, by, period)
        assert len(totals) == len(rows)
    assert rollup.run(spark, tmp_path, rollup.Parameters(by)).nothing == "nothing is new"

    parameters = top.Parameters(limit=3, measure="bytes")
    assert len(top.run(spark, tmp_path, parameters).days) == 2
    ranked = sorted(
        (tuple(row[name] for name in row if name != "date") for row in found(spark, tmp_path, "top")),
        key=lambda row: row[:3],
    )
    assert ranked == [(*row[:6], pytest.approx(row[6])) for row in oracle.top(one + two, 3, "bytes")]

    # Only a changed day is computed again; a removed day is removed.
    changed = rows_of(1, chance)
    keep(spark, tmp_path, changed, date(2026, 3, 2))
    before = Table(tmp_path, "top").generations()
    assert top.run(spark, tmp_path, parameters).days == [date(2026, 3, 2)]
    after = Table(tmp_path, "top").generations()
    assert before["2026-03-01"] == after["2026-03-01"]
    assert before["2026-03-02"] != after["2026-03-02"]
    keep(spark, tmp_path, [], date(2026, 3, 1))
    arguments = argparse.Namespace(
        command_parser=argparse.ArgumentParser(prog="trouter pipeline top"),
        root=tmp_path,
        most=1,
        measure="msgs",
        by=("addr",),
        again=False,
        as_of=None,
        since=None,
        until=date(2026, 3, 2),
        json=True,
    )
    quiet = Progress("test", quiet=True)
    assert top_command.answer(spark, quiet, arguments) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["dimension"], row["subject"], row["msgs"]) for row in printed] == [
        (row[1], row[3], row[4]) for row in oracle.top(changed, 1, "msgs")
    ]
    arguments.json = False
    assert rollup_command.answer(spark, quiet, arguments) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1].split()[:3] == ["date", "addr", "msgs"]
    assert len(shown) == 3 + 4


def test_an_unknown_sum_is_refused() -> None:
    from trouter_pipeline.jobs.rollup import Parameters as Rollup
    from trouter_pipeline.jobs.top import Parameters as Top

    with pytest.raises(ValueError, match="moon: there are vhost"):
        Rollup(("moon",))
    with pytest.raises(ValueError, match="at least 1"):
        Top(limit=0)
    with pytest.raises(ValueError, match="there are msgs, bytes"):
        Top(measure="moon")
