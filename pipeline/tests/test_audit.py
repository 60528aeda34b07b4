"""Audit over data sets and over streams, on Spark: the planted attacks are found, the same either way."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from pipeline.tests.attacked import attacks, denial, login, noisy_day
from pipeline.tests.generate import DAY, SECOND, START, Scribe, again, segments
from pipeline.tests.oracles.audit import Found, rule_counts
from pipeline.tests.test_attacks import Numbered, in_table, named
from trouter.records import PolicyLoaded, Record
from trouter_pipeline.attacks import Limits
from trouter_pipeline.compact import compact, here
from trouter_pipeline.delta import BadTable
from trouter_pipeline.jobs import audit
from trouter_pipeline.streams import LateRows, Pace, watch
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.one_twin

RULES = ["tenant-1:staff:sources", "tenant-1:staff:targets"]


def written(
    folder: Path, router: str, records: Iterable[Record], per_segment: int, *, compress: bool
) -> list[Numbered]:
    """Write the records of one router in segments; return them with their numbers."""
    scribe = Scribe(folder, router, START, compress=compress)
    ordered = sorted(records, key=lambda record: record.t)
    scribe.write_all(ordered, per_segment)
    scribe.stop()
    return [(router, scribe.boot, n, record) for n, record in enumerate(ordered)]


class Site:
    """Two routers that recorded half of a noisy day and its attacks each; compacted under ``root``."""

    def __init__(self, folder: Path) -> None:
        planted, self.cases = attacks(1)
        noise = noisy_day(1)[::4]
        loaded: list[Record] = [PolicyLoaded(t=START + n, vhost="tenant-1", rules=RULES) for n in range(2)]
        both = sorted([*planted, *noise], key=lambda record: record.t)
        self.root = folder / "root"
        self.folders = [folder / "a", folder / "b"]
        self.records = [
            *written(self.folders[0], "QDR.A", [*both[::2], loaded[0]], 1500, compress=False),
            *written(self.folders[1], "QDR.B", [*both[1::2], loaded[1]], 900, compress=True),
        ]
        again(segments(self.folders[0])[1], folder / "copies")
        compact([*self.folders, folder / "copies"], self.root, run=here)
        self.as_of = both[-1].t


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("site"))


def quiet(_: str) -> None:
    """Show no progress."""


def us(moment: datetime) -> int:
    whole = moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (whole.days * 86_400 + whole.seconds) * SECOND + whole.microseconds


def found_in(rows: Iterable[Any]) -> set[Found]:
    """Return the compared fields of rows of the table."""
    return {
        Found(
            row["rule"], row["user"], row["host"], row["vhost"], us(row["first_at"]), us(row["last_at"]),
            row["failures"], row["distinct"], row["ended"],
        )
        for row in rows
    }  # fmt: skip


def stored(spark: SparkSession, root: Path) -> set[Found]:
    rows: list[Any] = Table(root, audit.ALERTS).read(spark).collect()
    for row in rows:
        assert row["date"] == row["first_at"].date()
        assert row["evidence_n"] == [int(each.rpartition("~")[2]) for each in row["evidence"]]
    return found_in(rows)


def test_the_tables_equal_the_records_and_a_rerun_does_nothing(spark: SparkSession, site: Site) -> None:
    summary = audit.run(spark, site.root, audit.Parameters(), quiet)
    found = stored(spark, site.root)
    assert found == in_table(site.records, Limits(), site.as_of)
    assert {(rule, user, host) for rule, user, host in named(found) if user != "retired"} == site.cases
    assert sum(summary.alerts.values()) == len(found)
    rows = Table(site.root, audit.RULES).read(spark).collect()
    counted = {(row["date"], row["vhost"], row["rule"], row["allowed"], row["denied"]) for row in rows}
    days = {(date(1970, 1, 1).toordinal() + int(day), *rest) for day, *rest in rule_counts(site.records)}
    assert {(day.toordinal(), *rest) for day, *rest in counted} == days
    assert summary.unused_rules == 1
    committed = Table(site.root, audit.ALERTS).generations()
    second = audit.run(spark, site.root, audit.Parameters(), quiet)
    assert second.nothing == "the tables are made of these records already"
    assert Table(site.root, audit.ALERTS).generations() == committed
    DeltaTable(str(Table(site.root, audit.ALERTS).folder)).delete("rule = 'brute-force'")
    with pytest.raises(BadTable, match=r"DELETE of another program changed rows, .*`trouter pipeline audit --again`"):
        audit.run(spark, site.root, audit.Parameters(), quiet)
    audit.run(spark, site.root, audit.Parameters(again=True), quiet)
    assert stored(spark, site.root) == found


@pytest.mark.pipeline_long
def test_a_stream_of_segments_gives_the_same_alerts_across_a_stop(
    spark: SparkSession, site: Site, tmp_path: Path
) -> None:
    """Two runs read: first the complete segments, then the rest, compressed since; then a day passes."""
    live = [tmp_path / "a", tmp_path / "b"]
    waves = []
    for folder, source in zip(live, site.folders, strict=True):
        folder.mkdir()
        paths = segments(source)
        waves.append((folder, paths[: len(paths) // 2], paths[len(paths) // 2 :]))
    parameters = audit.Parameters(pace=Pace(late_s=86_400))
    spoken: set[str] = set()

    def note(alerts: DataFrame) -> None:
        spoken.update(row["alert_id"] for row in alerts.collect())

    for wave in (1, 2):
        for folder, *parts in waves:
            for path in parts[wave - 1]:
                again(path, folder)
        if wave == 2:  # at last the routers record something later, so that all episodes end
            for folder, router in zip(live, ("QDR.A", "QDR.B"), strict=True):
                written(folder, router, [denial(site.as_of + 3 * DAY, "x", "y")], 1, compress=False)
        stream = audit.followed(spark, live)
        checkpoint = tmp_path / "checkpoint"
        start = partial(audit.follow, stream, tmp_path / "root", checkpoint, parameters, note)
        done = watch(start, parameters.pace)
        assert done.late == 0
    assert stored(spark, tmp_path / "root") == in_table(site.records, Limits(), site.as_of + 2 * DAY)
    assert spoken == {row["alert_id"] for row in Table(tmp_path / "root", audit.ALERTS).read(spark).collect()}


@pytest.mark.slow
@pytest.mark.pipeline_long
def test_late_rows_are_counted_and_end_a_run_with_late_set_to_fail(spark: SparkSession, tmp_path: Path) -> None:
    live, root = tmp_path / "live", tmp_path / "root"
    paces = [Pace(late_s=60), Pace(late_s=60, late="drop"), Pace(late_s=60)]
    late = []
    for wave, pace in enumerate(paces):
        at = START + (DAY if wave == 0 else wave)
        written(live, f"QDR.{wave}", [login(at, "alice", "h")], 1, compress=False)
        parameters = audit.Parameters(pace=pace)
        start = partial(audit.follow, audit.followed(spark, [live]), root, tmp_path / "checkpoint", parameters)
        if pace.late == "fail":
            with pytest.raises(LateRows, match="2 rows came more than 60 s after others"):
                watch(start, pace)
        else:
            late.append(watch(start, pace).late)
    assert late == [0, 2]  # each failure counts for its host and for its user
