"""The meter agrees with the true totals, or marks the row that does not: with segments lost, twice, late."""

from __future__ import annotations

import argparse
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from pipeline.tests.generate import (
    HOUR,
    SECOND,
    START,
    Ledger,
    Scribe,
    again,
    lines_of,
    overlap,
    segments,
    traffic,
)
from pipeline.tests.oracles import meter as oracle
from trouter.records import DeliveryInterval, Record
from trouter_pipeline.commands import meter as meter_command
from trouter_pipeline.compact import compact
from trouter_pipeline.datasets import SegmentFacts
from trouter_pipeline.jobs import meter
from trouter_pipeline.jobs.meter import VERSION, Parameters, _connected_days, _metered_days, _Work
from trouter_pipeline.metering.engines import Engine, InProcess, OnSpark
from trouter_pipeline.progress import Progress
from trouter_pipeline.tables import Table

pytestmark = pytest.mark.one_twin

TABLES = ("meter", "meter_conn", "meter_gaps")


@dataclass
class Case:
    """The fate of one router's segments, and its true totals. Its tenants have its name."""

    name: str
    folder: Path
    ledgers: list[Ledger]

    @classmethod
    def written(cls, root: Path, name: str, seed: int, **settings: Any) -> Case:
        case = cls(name, root / name, [])
        case.boot(seed, **settings)
        return case

    def boot(self, seed: int, *, begin: int = START, end: int = START + 3 * HOUR, first_conn: int = 1) -> None:
        """Add one start of the router, up to a stop."""
        scribe = Scribe(self.folder, self.name, begin)
        ledger = Ledger(self.name, scribe.boot)
        records = traffic(
            ledger, seed=seed, begin=begin, end=end, connections=8, prefix=self.name, first_conn=first_conn
        )
        scribe.write_all(records, 60)
        scribe.stop()
        self.ledgers.append(ledger)

    @property
    def segments(self) -> list[Path]:
        return segments(self.folder)

    @property
    def middle(self) -> list[Path]:
        """Return two segments in the middle; a link ends in the first of them."""
        inner = self.segments[1:-1]
        at = next(
            at
            for at, path in enumerate(inner[:-1])
            if any(isinstance(record, DeliveryInterval) and record.final for _, record in lines_of(path)[1])
        )
        return inner[at : at + 2]

    def truth(self) -> Counter[tuple[str, str, str, str]]:
        """Return messages by tenant, user, address and direction."""
        total: Counter[tuple[str, str, str, str]] = Counter()
        for ledger in self.ledgers:
            for link in ledger.links.values():
                total[link.vhost, link.user, link.addr, link.dir] += link.totals["msgs"]
        return total


def streams_of(folders: Iterable[Path]) -> dict[tuple[str, int], dict[int, Record]]:
    streams: dict[tuple[str, int], dict[int, Record]] = defaultdict(dict)
    for folder in folders:
        for path in segments(folder):
            header, lines = lines_of(path)
            streams[header.router, header.boot].update(lines)
    return streams


def metered(root: Path) -> dict[oracle.Key, oracle.Row]:
    rows = {}
    for row in Table(root, "meter").rows().to_pylist():
        key = (us_of(row["hour"]), row["vhost"], row["user"], row["addr"], row["dir"])
        assert key not in rows
        assert row["date"] == row["hour"].date()
        counts = {name: row[name] for name in (*oracle.COUNTED, "rows", "estimated_msgs")}
        rows[key] = oracle.Row(Counter(counts), row["complete"])
    return rows


def connected(root: Path) -> dict[oracle.ConnKey, dict[str, int]]:
    return {
        (us_of(row["hour"]), row["vhost"], row["user"]): {
            "us": round(row["connection_hours"] * HOUR),
            **{name: row[name] for name in ("peak_connections", "peak_links", "opened", "failed")},
        }
        for row in Table(root, "meter_conn").rows().to_pylist()
    }


def us_of(moment: datetime) -> int:
    return int(moment.astimezone(UTC).timestamp()) * SECOND


def same(found: dict[oracle.Key, oracle.Row], wanted: dict[oracle.Key, oracle.Row]) -> None:
    assert found.keys() == wanted.keys()
    for key, row in wanted.items():
        assert found[key].complete == row.complete, key
        assert +found[key].counts == +row.counts, key


def by_subject(rows: dict[oracle.Key, oracle.Row], name: str) -> tuple[Counter[tuple[Any, ...]], set[tuple[Any, ...]]]:
    """Return the messages of a case's tenants by all keys but the hour, and the keys with incomplete rows."""
    total: Counter[tuple[Any, ...]] = Counter()
    unknown = set()
    for (_, *subject), row in rows.items():
        if str(subject[0]).rpartition("-")[0] == name:
            total[tuple(subject)] += row.counts["msgs"]
            if not row.complete:
                unknown.add(tuple(subject))
    return total, unknown


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> Engine:
    return InProcess() if request.param == "duckdb" else OnSpark(request.getfixturevalue("spark"))


class Faulty(NamedTuple):
    """Compacted records of routers with a fault each; one segment is away, and comes late."""

    root: Path
    cases: dict[str, Case]
    folders: list[Path]
    late: Path


@pytest.fixture
def faulty(tmp_path: Path) -> Faulty:
    names = ("clean", "lost", "twice", "overlapping", "first", "late", "rebooted", "crashed")
    cases = {name: Case.written(tmp_path, name, seed) for seed, name in enumerate(names)}
    backup = tmp_path / "backup"
    cases["lost"].middle[0].unlink()
    again(cases["twice"].middle[0], backup)
    before, after = cases["overlapping"].middle
    overlap(before, after, backup)
    cases["first"].segments[0].unlink()
    parked = cases["late"].middle[0]
    late = parked.rename(tmp_path / parked.name)
    cases["rebooted"].boot(77, begin=START + 4 * HOUR, end=START + 6 * HOUR)  # the same link numbers again
    cases["crashed"].segments[-1].unlink()
    cases["crashed"].boot(78, begin=START + 4 * HOUR, end=START + 5 * HOUR)
    folders = [*(case.folder for case in cases.values()), backup]
    assert compact(folders, tmp_path / "root").errors == []
    return Faulty(tmp_path / "root", cases, folders, late)


def test_every_fault_ends_exact_or_is_reported(engine: Engine, faulty: Faulty) -> None:
    root = faulty.root
    assert meter.run(engine, root).gaps == 3
    found = metered(root)
    same(found, oracle.meter(streams_of(faulty.folders)))
    wanted = {key: row for key, row in oracle.connections(streams_of(faulty.folders)).items() if any(row.values())}
    assert {key: row for key, row in connected(root).items() if any(row.values())} == wanted
    estimated = {key[1].rpartition("-")[0] for key, row in found.items() if row.counts["estimated_msgs"] and key[1]}
    assert estimated == {"lost", "first", "late"}
    for name, case in faulty.cases.items():
        total, unknown = by_subject(found, name)
        for subject, messages in case.truth().items():
            lacks = name in {"lost", "late", "crashed"} and subject in unknown
            assert total[subject] == messages or lacks, subject
    gaps = Table(root, "meter_gaps").rows().to_pylist()
    assert {(row["router"], row["explained"]) for row in gaps} == {("lost", False), ("first", False), ("late", False)}


@pytest.mark.parametrize(
    "engine",
    ["duckdb", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.pipeline_long])],
    indirect=True,
)
def test_without_new_input_nothing_changes_and_a_late_segment_corrects_the_days_that_it_reports(
    engine: Engine, faulty: Faulty, capsys: pytest.CaptureFixture[str]
) -> None:
    root, cases, folders, late = faulty
    meter.run(engine, root)
    written = [Table(root, name).generations() for name in TABLES]
    assert meter.run(engine, root).nothing == "nothing is new"
    assert [Table(root, name).generations() for name in TABLES] == written
    late.rename(cases["late"].folder / late.name)
    assert compact(folders, root).segments == 1
    assert meter.run(engine, root).segments == 1
    found = metered(root)
    same(found, oracle.meter(streams_of(folders)))
    total, _ = by_subject(found, "late")
    assert +total == cases["late"].truth()
    assert {row["router"] for row in Table(root, "meter_gaps").rows().to_pylist()} == {"lost", "first"}

    parser = argparse.ArgumentParser(prog="trouter pipeline meter")
    arguments = argparse.Namespace(
        command_parser=parser,
        root=root,
        closed_before=None,
        again=False,
        since=None,
        until=None,
        json=False,
        as_of=None,
    )
    assert meter_command.answer(engine, Progress("test", quiet=True), arguments) == 0
    shown = capsys.readouterr().out.splitlines()
    words = next(line.split() for line in shown if line.split()[:1] == ["clean-0"])
    assert words[1] == str(sum(n for subject, n in cases["clean"].truth().items() if subject[0] == "clean-0"))
    assert words[-2] == "no"  # it may have had a link at a router whose records are lost
    assert sum(line.split()[:1] in (["lost"], ["first"]) for line in shown) == 2


def facts(router: str = "A", boot: int = 1, first: int = 0, dates: tuple[str, ...] = ("2026-03-02",)) -> SegmentFacts:
    t = int(datetime.fromisoformat(f"{dates[-1]}T12:00+00:00").timestamp()) * SECOND
    return SegmentFacts(
        router=router, boot=boot, first=first, last=first + 9, count=10, crc=first, t_min=t, t_max=t, dates=dates
    )


def test_only_days_that_may_have_changed_are_computed_again(tmp_path: Path) -> None:
    days = [date(2026, 3, day) for day in range(1, 6)]
    one, two, four = (facts(first=10 * n, dates=(str(days[n]),)) for n in (0, 1, 3))
    three = facts(first=20, dates=(str(days[1]), str(days[2])))

    def work(held: dict[str, SegmentFacts], now: dict[str, SegmentFacts], **given: Any) -> _Work:
        inputs = {name: each.crc for name, each in held.items()}
        covered = [date.fromisoformat(day) for each in held.values() for day in each.dates]
        rows = pa.table({"date": pa.array(covered, pa.date32()), "value": covered})
        table = Table(tmp_path, "meter")
        days = {*covered, *table.dates()}
        table.commit(rows, days, inputs=inputs, job="meter", version=VERSION, parameters={})
        return _Work(table, now, Parameters(**given), {})

    # The next segment changes its own days, and for connections those since the last record.
    next_one = work({"1": one}, {"1": one, "2": two})
    assert (set(next_one.fresh), _metered_days(next_one, set())) == ({"2"}, {days[1]})
    assert _connected_days(next_one) == {days[0], days[1]}
    # A new gap may hide intervals of any link, on the day of its last record; so may one that is closed.
    gap = work({"1": one, "2": two}, {"1": one, "2": two, "4": four})
    assert _metered_days(gap, set()) == {days[0], days[1], days[3]}
    late = work({"1": one, "2": two, "4": four}, {"1": one, "2": two, "3": three, "4": four})
    assert _metered_days(late, set()) == set(days[:4])
    assert _connected_days(late) == {days[1], days[2], days[3]}
    # A remaining gap is computed again where something was incomplete.
    five = facts(first=40, dates=(str(days[4]),))
    stays = work({"1": one, "2": two, "4": four}, {"1": one, "2": two, "4": four, "5": five})
    assert _metered_days(stays, {days[0]}) == {days[0], days[4]}
    # The next start of a router completes the one before.
    again_ = facts(boot=2, dates=(str(days[4]),))
    assert _metered_days(work({"1": one, "2": two}, {"1": one, "2": two, "x": again_}), set()) == {*days[:2], days[4]}
    # A segment that is missing or changed, or the option, restarts the computation.
    assert work({"1": one, "2": two}, {"1": one}).fresh.keys() == {"1"}
    assert work({"1": one}, {"1": one}, again=True).fresh.keys() == {"1"}
    # Days of the table that no segment reports any more are removed then.
    gone = work({"1": one, "2": two}, {"1": one})
    assert (_metered_days(gone, set()), _connected_days(gone)) == (set(days[:2]), set(days[:2]))
    assert not work({"1": one}, {"1": one}).fresh
    # Closed days stay as they are, and segments that only concern them are named.
    closed = work({"2": two}, {"1": one, "2": two, "3": three}, closed_before=days[2])
    assert (closed.too_late, set(closed.fresh), closed.open_days(days)) == (["1"], {"3"}, set(days[2:]))


def test_rows_are_shown_in_order_without_all_of_them_in_python() -> None:
    count = 50_000
    at = pa.array([datetime(2026, 3, 1, tzinfo=UTC)] * count, pa.timestamp("us", "UTC"))
    table = pa.table({"n": range(count, 0, -1), "name": ["x" * 100] * count, "hour": at})
    tracemalloc.start()
    try:
        rows = enumerate(meter.ordered(table, ("n",)), 1)
        shown = sum(1 for n, row in rows if row["n"] == n and row["hour"].tzinfo is None)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert shown == count
    assert most < count * 200  # a row of three values is some 400 bytes
