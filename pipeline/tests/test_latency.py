"""Latency: sketches sum exactly, in any order and grouping, and percentiles are within the error limit."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.tests.generate import HOUR, MINUTE, START, Scribe
from pipeline.tests.oracles.latency import by_hour, percentile
from trouter.records import LatencySketch
from trouter.records.sketch import bucket_of, merged, middle_of
from trouter_pipeline.compact import compact, here
from trouter_pipeline.jobs import latency
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def sketch(
    t0: int, values: list[int], *, addr: str | None, family: str | None = None, exact: bool = True
) -> LatencySketch:
    bi, bc = merged((bucket_of(value), 1) for value in values)
    return LatencySketch(
        t=t0 + MINUTE, t0=t0, t1=t0 + MINUTE, unit="us", bits=5, bi=bi, bc=bc, cnt=len(values), addr=addr,
        family=family, min=min(values) if exact else None, max=max(values) if exact else None,
        rounded=None if exact else True,
    )  # fmt: skip


def test_hours_are_exact_and_days_are_made_of_them(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(1)
    sketches: list[LatencySketch] = []
    values: dict[tuple[int, str], list[int]] = {}
    for minute in range(150):
        for addr in ("a", "b"):
            these = [int(chance.lognormvariate(8, 2)) for _ in range(chance.randrange(1, 60))]
            values.setdefault((minute // 60, addr), []).extend(these)
            sketches.append(sketch(START + minute * MINUTE, these, addr=addr))
        sketches.append(sketch(START + minute * MINUTE, [100, 12_000_000], addr=None, family="mobile", exact=False))
    edges = [0, 1, 31, 32, 33, *(number for k in range(6, 63) for number in ((1 << k) - 1, 1 << k)), (1 << 63) - 1]
    sketches.append(sketch(START, edges, addr="edges"))
    scribe = Scribe(tmp_path / "a")
    scribe.write_all(sketches[::2], 60)
    scribe.stop()
    compact([tmp_path / "a"], tmp_path / "root", run=here)
    assert latency.run(spark, tmp_path / "root").days == 1
    other = Scribe(tmp_path / "b", "QDR.B")
    other.write_all(sketches[1::2], 60)
    other.stop()
    compact([tmp_path / "a", tmp_path / "b"], tmp_path / "root", run=here)
    assert latency.run(spark, tmp_path / "root").segments > 0
    assert latency.run(spark, tmp_path / "root").nothing == "nothing is new"
    table = Table(tmp_path / "root", "latency").read(spark)
    rows: list[Any] = table.collect()
    expected = by_hour(sketches)
    assert len(rows) == len(expected)
    for row in rows:
        key = START // HOUR + row["hour"].hour, (row["vhost"], row["addr"], row["family"], row["path"])
        counts, largest = expected[key]
        assert dict(zip(row["bi"], row["bc"], strict=True)) == dict(counts)
        assert row["bi"] == sorted(counts)
        for share, name in latency.PERCENTILES:
            assert row[name] == percentile(counts, share, largest)
        assert row["max_us"] == (int(middle_of(max(counts))) if largest is None else largest)
        assert row["rounded"] == (row["family"] is not None)
        if row["addr"] in {"a", "b"}:
            true = sorted(values[row["hour"].hour, row["addr"]])
            for share, name in latency.PERCENTILES:
                assert row[name] == pytest.approx(true[-(-len(true) * share // 10_000) - 1], rel=1 / 64, abs=0.5)
    days: list[Any] = latency.merged(table, ["date", "addr"]).where("addr = 'a'").collect()
    direct: list[Any] = latency.merged(table.orderBy("cnt").repartition(3), ["addr"]).where("addr = 'a'").collect()
    assert days[0]["bi"] == direct[0]["bi"]
    assert days[0]["bc"] == direct[0]["bc"]
    assert days[0]["p95_us"] == direct[0]["p95_us"]
    assert days[0]["cnt"] == sum(row["cnt"] for row in rows if row["addr"] == "a")


def test_buckets_of_another_size_are_refused_with_their_record(spark: SparkSession, tmp_path: Path) -> None:
    scribe = Scribe(tmp_path / "a")
    odd = sketch(START, [1, 2], addr="a")
    odd.bits = 6
    scribe.write_all([odd])
    scribe.stop()
    compact([tmp_path / "a"], tmp_path / "root", run=here)
    with pytest.raises(latency.OtherBuckets, match=r"record 0: buckets of 6 bits in us"):
        latency.run(spark, tmp_path / "root")
