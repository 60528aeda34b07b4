"""Topology: the spans of every neighbour, flapping at the limits, restarts of routers, convergence."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.tests.generate import HOUR, MINUTE, SECOND, START, Scribe, again, segments
from pipeline.tests.oracles.topology import Span, history
from pipeline.tests.test_audit import us
from trouter.records import LatencySketch, TopologyChange
from trouter_pipeline.compact import compact, here
from trouter_pipeline.jobs import topology
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.one_twin


def up(t: int, peer: str, cause: str | None = None) -> TopologyChange:
    return TopologyChange(t=t, what="neighbour-up", peer=peer, cost_new=1, cause_id=cause)


def down(t: int, peer: str, cause: str | None = None) -> TopologyChange:
    return TopologyChange(t=t, what="neighbour-down", peer=peer, why="gone", cause_id=cause)


def lost_often(peer: str, times: int, within_us: int) -> list[TopologyChange]:
    """Return losses of a neighbour, the last ``within_us`` after the first."""
    at = [START + HOUR + within_us * number // (times - 1) for number in range(times)]
    return [each for t in at for each in (up(t - SECOND, peer), down(t, peer))]


def test_the_history_equals_the_reported_changes(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(3)
    first: list[TopologyChange] = [
        *lost_often("four", 4, 60 * SECOND),
        *lost_often("five", 5, 600 * SECOND),
        *lost_often("six", 6, 300 * SECOND),
        *lost_often("slower", 5, 600 * SECOND + 4),
        up(START, "steady"),
        TopologyChange(t=START + 5, what="path", peer="far", cost_new=2, next_hop="steady", cause_id="x:1"),
    ]
    for peer in ("p", "q"):
        t = START
        for _ in range(20):
            t += chance.randrange(3 * MINUTE, 6 * MINUTE)
            first += [up(t, peer), down(t + chance.randrange(1, MINUTE), peer)]
    second = [up(START + 5 * HOUR + 1, "steady", "y:1"), down(START + 6 * HOUR, "steady", "y:2")]
    other = [
        down(START + 6 * HOUR + 300, "QDR.A", "y:2"),
        TopologyChange(t=START + 6 * HOUR + 9000, what="path", peer="far", cost_old=2, cause_id="y:2"),
        TopologyChange(t=START + 7 * HOUR, what="converged", cause_id="y:2", converge_us=8000, routers=1),
    ]
    recorded = []
    for router, at, news in (
        ("QDR.A", START, first),
        ("QDR.A", START + 5 * HOUR, second),
        ("QDR.B", START, [up(START, "QDR.A"), *other]),
    ):
        scribe = Scribe(tmp_path / router, router, at)
        ordered = sorted(news, key=lambda each: each.t)
        scribe.write_all(ordered, 30)
        scribe.stop()
        recorded += [(router, scribe.boot, n, record) for n, record in enumerate(ordered)]
    figures = Scribe(tmp_path / "figures", "QDR.A", START + 2 * HOUR)  # no other start of the router
    figures.write_all([LatencySketch(t=START + 2 * HOUR, t0=0, t1=1, unit="us", bits=5, bi=[1], bc=[1], cnt=1)])
    figures.stop()
    again(segments(tmp_path / "QDR.A")[0], tmp_path / "copies")
    compact([tmp_path / name for name in ("QDR.A", "QDR.B", "copies", "figures")], tmp_path / "root", run=here)
    assert topology.run(spark, tmp_path / "root").nothing is None
    rows: list[Any] = Table(tmp_path / "root", topology.HISTORY).read(spark).collect()
    found = [
        Span(
            row["router"], row["peer"], us(row["up_at"]), None if row["down_at"] is None else us(row["down_at"]),
            row["cost"], row["flap"],
        )
        for row in rows
    ]  # fmt: skip
    assert sorted(found) == history(recorded, flaps=5, window_s=600)
    assert {row["peer"] for row in rows if row["flap"]} == {"five", "six"}
    steady = sorted((row for row in rows if row["peer"] == "steady"), key=lambda row: row["up_at"])
    assert [row["why"] for row in steady] == [topology.RESTART, "gone"]
    assert steady[1]["converge_us"] == 9000
    causes: list[Any] = Table(tmp_path / "root", topology.CHANGES).read(spark).where("cause_id = 'y:2'").collect()
    assert [(row["routers"], row["converge_us"], row["told_us"]) for row in causes] == [(2, 9000, 8000)]
    assert topology.run(spark, tmp_path / "root").nothing == "nothing is new"
    assert topology.run(spark, tmp_path / "root", topology.Parameters(flaps=6)).nothing is None
    less: list[Any] = Table(tmp_path / "root", topology.HISTORY).read(spark).where("flap").collect()
    assert {row["peer"] for row in less} == {"six"}


@pytest.mark.parametrize(("flaps", "window"), [(1, 600), (5, 0)])
def test_parameters_that_make_no_sense_are_refused(flaps: int, window: int) -> None:
    with pytest.raises(ValueError, match="flaps"):
        topology.Parameters(flaps, window)
