"""Billing over a gap: no row of its hours is complete, in any table, for any tenant, by any documented query."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

from pipeline.tests.generate import HOUR, MINUTE, SECOND, START, Counting, Scribe, TrueLink, segments
from trouter.records import ConnectionClosedRecord, ConnectionOpenedRecord, LinkAttachedRecord, LinkDetachedRecord
from trouter.records.schema import Record
from trouter_pipeline.compact import compact
from trouter_pipeline.delta import BadTable
from trouter_pipeline.jobs import meter
from trouter_pipeline.metering.engines import Engine, InProcess, OnSpark
from trouter_pipeline.metering.unproven import Lost, hours_of
from trouter_pipeline.tables import Table

pytestmark = pytest.mark.one_twin

PAGE = Path(__file__).parents[2] / "docs/pipeline.md"


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.pipeline_long])])
def engine(request: pytest.FixtureRequest) -> Engine:
    return InProcess() if request.param == "duckdb" else OnSpark(request.getfixturevalue("spark"))


def test_a_gap_of_a_wrong_clock_has_no_more_hours_than_the_days_that_are_metered() -> None:
    days = [date(2026, 3, 1), date(2026, 3, 2)]
    assert len(hours_of([Lost("A", 1, 0, 1 << 62)], days)) == 48
    begin = int(datetime(2026, 3, 2, 9, 59, tzinfo=UTC).timestamp()) * 1_000_000
    (nine, ten) = hours_of([Lost("A", 1, begin, begin + 60_000_000)], days)["hour_us"].to_pylist()
    assert (nine, ten) == (begin - 59 * 60_000_000, begin + 60_000_000)
    assert len(hours_of([Lost("A", 1, begin, begin)], [date(2026, 3, 1)])) == 0


def life(tenant: str, conn: int, begin: int, end: int) -> tuple[list[Record], list[Record]]:
    """Return the records of a connection with one sending link: those of its begin, and those of its end."""
    peer: dict[str, Any] = {"conn": conn, "vhost": tenant, "tenant": tenant, "user": "app", "host": "192.0.2.1"}
    about: dict[str, Any] = {"link": conn, "addr": "orders", "dir": "in", **peer}
    counting = Counting(TrueLink(tenant, "app", "orders", "in"), conn=conn, link=conn)
    opened = ConnectionOpenedRecord(t=begin, listener="amqp", role="normal", dir="in", mech="PLAIN", **peer)
    attached = LinkAttachedRecord(t=begin, kind="endpoint", dynamic=False, snd_mode=2, rcv_mode=0, credit=0, **about)
    final = counting.interval(begin, end, final=True, msgs=1000, bytes=10)
    detached = LinkDetachedRecord(t=end, attached_at=begin, closed=True, reason="peer", **about)
    closed = ConnectionClosedRecord(
        t=end, opened_at=begin, duration_us=end - begin, by="peer", bytes_in=1, bytes_out=1, **peer
    )
    return [opened, attached], [final, detached, closed]


def whole(parts: tuple[list[Record], list[Record]]) -> list[Record]:
    return [*parts[0], *parts[1]]


def recorded(folder: Path, *batches: list[Record], router: str = "QDR.A", runs_on: bool = False) -> list[Path]:
    """Write a segment for each batch of one start of a router; return them."""
    scribe = Scribe(folder, router, START)
    for batch in batches:
        scribe.write(*batch)
        scribe.rotate()
    if not runs_on:
        scribe.stop()
    return segments(folder)


def damaged(path: Path) -> None:
    octets = bytearray(path.read_bytes())
    octets[len(octets) // 2] ^= 1
    path.write_bytes(octets)


def hours(root: Path, table: str, tenant: str | None) -> dict[int, bool]:
    """Return the hours from the start on in which a tenant has rows of a table, and whether all are complete."""
    found: dict[int, bool] = {}
    for row in Table(root, table).rows().to_pylist():
        if row["vhost"] == tenant:
            hour = (int(row["hour"].astimezone(UTC).timestamp()) * SECOND - START) // HOUR
            found[hour] = found.get(hour, True) and row["complete"]
    return found


def billed(root: Path) -> dict[str | None, bool]:
    """Return what the manual's query says of each tenant."""
    query = re.search(r"The amounts to bill each tenant for.*?```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert query is not None
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        db.register("meter", Table(root, "meter").rows())
        return {vhost: complete for _, vhost, _, _, _, complete in db.sql(query[1]).fetchall()}


@pytest.mark.parametrize("damage", [Path.unlink, damaged], ids=["lost", "flipped"])
def test_a_tenant_wholly_inside_a_gap_has_a_row_and_no_bill_is_complete(
    engine: Engine, tmp_path: Path, damage: Any
) -> None:
    early = life("globex", 1, START + MINUTE, START + 20 * MINUTE)
    hidden = life("acme", 2, START + HOUR + 5 * MINUTE, START + HOUR + 20 * MINUTE)
    late = life("globex", 3, START + HOUR + 30 * MINUTE, START + HOUR + 40 * MINUTE)
    again = life("acme", 4, START + 3 * HOUR + MINUTE, START + 3 * HOUR + 2 * MINUTE)
    made = recorded(tmp_path / "a", whole(early), whole(hidden), whole(late), whole(again))
    other = life("initech", 1, START + HOUR + 10 * MINUTE, START + HOUR + 11 * MINUTE)
    recorded(tmp_path / "b", whole(other), router="QDR.B")
    damage(made[1])
    compact([tmp_path / "a", tmp_path / "b"], tmp_path / "root")
    meter.run(engine, tmp_path / "root")
    # acme's messages are in no record: its row of that hour says so, and so do those of the tenants that are known
    unproven = {0: False, 1: False}  # the gap begins with the last record before it, and that interval in the hour 0
    assert hours(tmp_path / "root", "meter", "acme") == {**unproven, 3: True}
    assert hours(tmp_path / "root", "meter", "globex") == unproven
    assert hours(tmp_path / "root", "meter", "initech") == unproven
    assert hours(tmp_path / "root", "meter", None) == unproven  # for a tenant that is known nowhere
    assert set(billed(tmp_path / "root").values()) == {False}
    shown = meter.used(Table(tmp_path / "root", "meter").rows(), Table(tmp_path / "root", "meter_conn").rows())
    assert set(shown["complete"].to_pylist()) == {False}
    # of connections nothing is proved while the router that had the gap runs on
    assert not any(hours(tmp_path / "root", "meter_conn", "globex").values())
    assert hours(tmp_path / "root", "meter_conn", "acme")[3] is False


def test_without_a_gap_all_is_complete(engine: Engine, tmp_path: Path) -> None:
    early = life("globex", 1, START + MINUTE, START + 20 * MINUTE)
    late = life("acme", 2, START + HOUR + 30 * MINUTE, START + HOUR + 40 * MINUTE)
    recorded(tmp_path / "a", whole(early), whole(late))
    compact([tmp_path / "a"], tmp_path / "root")
    meter.run(engine, tmp_path / "root")
    assert billed(tmp_path / "root") == {"globex": True, "acme": True}
    assert hours(tmp_path / "root", "meter_conn", "globex") == {0: True}
    assert hours(tmp_path / "root", "meter_conn", "acme") == {1: True}


def test_a_connection_whose_end_is_in_a_gap_is_not_complete_after_it(tmp_path: Path) -> None:
    begun, _ended = life("globex", 1, START + MINUTE, START + 2 * HOUR + MINUTE)
    other = life("acme", 2, START + 5 * HOUR, START + 5 * HOUR + MINUTE)
    last = life("acme", 3, START + 7 * HOUR, START + 7 * HOUR + MINUTE)
    first = life("acme", 9, START + 2 * HOUR, START + 2 * HOUR + 2 * MINUTE)
    made = recorded(tmp_path / "a", [*begun, *whole(first)], _ended, whole(other), whole(last))
    made[1].unlink()
    root = tmp_path / "root"
    compact([tmp_path / "a"], root)
    meter.run(InProcess(), root)
    assert not any(hours(root, "meter_conn", "acme").values())
    # once the router has ended, others' connections are known, for their records of the end have the begin
    scribe = Scribe(tmp_path / "a", "QDR.A", START + 9 * HOUR)
    scribe.write(*whole(life("acme", 1, START + 9 * HOUR, START + 9 * HOUR + MINUTE)))
    scribe.stop()
    compact([tmp_path / "a"], root)
    meter.run(InProcess(), root)
    known = hours(root, "meter_conn", "acme")
    assert (known[2], known[5], known[7], known[9]) == (False, False, True, True)  # the gap ends with the record at 5
    endless = hours(root, "meter_conn", "globex")
    assert [endless[hour] for hour in range(8)] == [True, True, *[False] * 6]


def test_a_gap_of_days_concerns_those_of_which_any_router_has_records(tmp_path: Path) -> None:
    day = 24 * HOUR
    before = life("globex", 1, START + MINUTE, START + 2 * MINUTE)
    lost = life("globex", 2, START + day, START + day + MINUTE)
    after = life("globex", 3, START + 3 * day + HOUR, START + 3 * day + HOUR + MINUTE)
    made = recorded(tmp_path / "a", whole(before), whole(lost), whole(after))
    made[1].unlink()
    other = [life("acme", number, START + at, START + at + MINUTE) for number, at in enumerate((day, 4 * day), 1)]
    recorded(tmp_path / "b", *(whole(each) for each in other), router="QDR.B")
    root = tmp_path / "root"
    compact([tmp_path / "a", tmp_path / "b"], root)
    meter.run(InProcess(), root)
    found = hours(root, "meter", "acme")
    assert {hour // 24 for hour, complete in found.items() if not complete} == {0, 1, 3}
    assert found[4 * 24] is True
    assert {*range(24, 48)} <= found.keys()
    # the lost segment is found, and closes the gap
    recorded(tmp_path / "again", whole(before), whole(lost), whole(after))
    compact([tmp_path / "a", tmp_path / "b", tmp_path / "again"], root)
    meter.run(InProcess(), root)
    assert all(hours(root, "meter", "acme").values())
    assert set(billed(root).values()) == {True}
    assert all(hours(root, "meter_conn", "acme").values())


def test_a_tenant_of_a_day_that_is_not_computed_again_keeps_its_row_in_a_gap(tmp_path: Path) -> None:
    day = 24 * HOUR
    at = [START + number * day for number in range(4)]
    lives = [life(f"tenant-{number}", number, begin, begin + MINUTE) for number, begin in enumerate(at)]
    only_counted = lives[1][1][:1]  # its attach was before the recording
    hidden = life("hidden", 9, START + HOUR, START + HOUR + MINUTE)
    after = life("tenant-0", 10, START + 2 * HOUR, START + 2 * HOUR + MINUTE)
    batches = [whole(lives[0]), whole(hidden), whole(after), only_counted, *(whole(each) for each in lives[2:])]
    made = recorded(tmp_path / "a", *batches, runs_on=True)
    made[1].unlink()
    later = made[-1].rename(tmp_path / made[-1].name)
    root = tmp_path / "root"
    compact([tmp_path / "a"], root)
    meter.run(InProcess(), root)
    later.rename(made[-1])
    compact([tmp_path / "a"], root)
    meter.run(InProcess(), root)  # the day of the gap and the last one: no bill of the days between can change
    assert hours(root, "meter", "tenant-1")[1] is False


def test_a_start_without_its_first_records_is_unproven_from_its_start(tmp_path: Path) -> None:
    first = life("globex", 1, START + MINUTE, START + 2 * MINUTE)
    second = life("acme", 2, START + 2 * HOUR, START + 2 * HOUR + MINUTE)
    made = recorded(tmp_path / "a", whole(first), whole(second))
    other = life("acme", 1, START + MINUTE, START + 2 * MINUTE)
    recorded(tmp_path / "b", whole(other), router="QDR.B")
    made[0].unlink()
    compact([tmp_path / "a", tmp_path / "b"], tmp_path / "root")
    meter.run(InProcess(), tmp_path / "root")
    assert hours(tmp_path / "root", "meter", "acme") == {0: False, 1: False, 2: False}
    when = Table(tmp_path / "root", "meter").rows()["hour"].to_pylist()
    assert max(when) - min(when) == timedelta(hours=2)
    assert min(when).astimezone(UTC) == datetime.fromtimestamp(START / SECOND, UTC)


@pytest.mark.parametrize("at_once", [True, False], ids=["one-run", "two-runs"])
def test_the_hours_of_records_that_are_left_out_are_not_proved(engine: Engine, tmp_path: Path, at_once: bool) -> None:
    root = tmp_path / "root"
    known = life("globex", 1, START + MINUTE, START + 3 * HOUR + 10 * MINUTE)
    recorded(tmp_path / "a", whole(known))
    if not at_once:
        compact([tmp_path / "a"], root)
        meter.run(engine, root)
    left_out = life("acme", 1, START + HOUR + 5 * MINUTE, START + HOUR + 20 * MINUTE)
    recorded(tmp_path / "b", whole(left_out))  # another router with the same id, which began in the same second
    summary = compact([tmp_path / "a", tmp_path / "b"], root, mark=True)
    assert summary.marked == 1  # what is in no row is not to be deleted
    (error,) = summary.errors
    meter.run(engine, root)
    assert hours(root, "meter", "globex")[1] is False
    assert hours(root, "meter", None)[1] is False
    assert set(billed(root).values()) == {False}
    (gap,) = Table(root, "meter_gaps").rows().to_pylist()
    assert gap["reason"] == "left out: other records have these numbers"
    assert summary.gaps == compact([tmp_path / "a"], root).gaps  # also without the folder
    assert compact([tmp_path / "a", tmp_path / "b"], root).errors == [error]
    assert meter.run(engine, root).nothing == "nothing is new"


def test_a_table_of_which_another_program_changed_rows_is_not_shown_as_complete(engine: Engine, tmp_path: Path) -> None:
    recorded(tmp_path / "a", whole(life("acme", 1, START + MINUTE, START + 2 * HOUR)))
    compact([tmp_path / "a"], tmp_path)
    meter.run(engine, tmp_path)
    made = Table(tmp_path, "meter").rows()
    delta = DeltaTable(str(tmp_path / "tables/meter"))
    former = delta.file_uris()
    delta.optimize.z_order(["vhost"])
    delta.vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert not {*former} & {*delta.file_uris()}
    assert meter.run(engine, tmp_path).nothing == "nothing is new"
    delta.delete("dir = 'in'")
    delta.vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(
        BadTable, match=r"meter: version \d+, DELETE of another program changed rows, .*`.* meter --again`"
    ):
        meter.run(engine, tmp_path)
    meter.run(engine, tmp_path, meter.Parameters(again=True))
    assert Table(tmp_path, "meter").rows().sort_by("hour").equals(made.sort_by("hour"))
    assert meter.run(engine, tmp_path).nothing == "nothing is new"
