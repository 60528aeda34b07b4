"""Pruning deletes exactly the segments that it names, at once or not at all, and no table loses a row by it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace as changed
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pipeline.tests.attacked import login
from pipeline.tests.generate import DAY, HOUR, MINUTE, START, Ledger, Scribe, segments, traffic
from trouter.cli import main
from trouter.records import KINDS, Record
from trouter_pipeline.compact import compact
from trouter_pipeline.datasets import UNKNOWN, Records, columns_of
from trouter_pipeline.delta import BadTable
from trouter_pipeline.metering.engines import InProcess
from trouter_pipeline.prune import Refused, Scope, prunable, prune
from trouter_pipeline.pruned import EVERYBODY, JOBS, KEPT, MADE_OF, TOGETHER, frozen_by
from trouter_pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = 4
CUT = date(2026, 3, 3)
TENANT = "tenant-1"
#: Kinds that report a beginning or an intermediate state; some of these records are needed later.
PARTLY = ("connection.opened", "link.attached", "delivery.interval")


def history(folder: Path) -> list[Record]:
    """Write four days of a router: connections over days, a start that ended with the first day, and a gap."""
    everything: list[Record] = []
    for begin, end, first in ((START, START + DAY, 1), (START + DAY, START + DAYS * DAY, 100)):
        scribe = Scribe(folder, at=begin)
        records: list[Record] = traffic(
            Ledger("QDR.A", scribe.boot),
            seed=first,
            begin=begin,
            end=end,
            first_conn=first,
            connections=40,
            step=2 * HOUR,
        )
        records += [login(begin + number * MINUTE, "alice", "192.0.2.9") for number in range(3)]
        scribe.write_all(records, 60)
        scribe.stop()
        everything += records
    gone = segments(folder)
    gone[len(gone) // 2].unlink()
    return everything


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pruned")
    history(folder / "in")
    compact([folder / "in"], folder / "root")
    return folder


@pytest.fixture
def root(compacted: Path, tmp_path: Path) -> Path:
    """Return a copy to prune."""
    return Path(shutil.copytree(compacted / "root", tmp_path / "root"))


def everything(before: date = CUT, *tenants: str) -> Scope:
    return Scope(before, tenants, prunable(tenants))


def rows(root: Path, kind: str) -> list[dict[str, Any]]:
    """Return the rows of a kind, with the day of each."""
    return [
        {**row, "date": day}
        for day, files in Records(root).kinds.get(kind, {}).items()
        for file in files
        for row in pq.ParquetFile(root / "records" / file.path).read().to_pylist()
    ]


def all_rows(root: Path) -> Counter[str]:
    return Counter(str((kind, *row.items())) for kind in Records(root).kinds for row in rows(root, kind))


def old(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in found if row["date"] < CUT.isoformat()]


def new(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in found if row["date"] >= CUT.isoformat()]


def living(found: Callable[[str], list[dict[str, Any]]], what: str, ended: str) -> set[tuple[int, int]]:
    """Return, by start and number, the connections or links of the last start that had not ended by then."""
    over = {(row["boot"], row[what]) for row in old(found(ended))}
    if what == "link":
        over |= {(row["boot"], row["link"]) for row in old(found("delivery.interval")) if row["final"]}
    begun = {(row["boot"], row[what]) for row in old(found("link.attached" if what == "link" else "connection.opened"))}
    latest = max(boot for boot, _ in begun)
    return {(boot, number) for boot, number in begun - over if boot == latest}


def test_without_yes_nothing_changes(root: Path) -> None:
    there = {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file() and path.name != "_LOCK"}
    summary = prune(root, everything())
    assert not summary.done
    assert there == {
        path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file() and path.name != "_LOCK"
    }
    assert {part.what for part in summary.parts} == set(Records(root).kinds) - set(KEPT)
    assert all(day < CUT.isoformat() for part in summary.parts for day in part.days)


def test_old_days_are_pruned_except_records_that_later_days_need(root: Path, compacted: Path) -> None:
    summary = prune(root, everything(), really=True)
    assert summary.done

    def before(kind: str) -> list[dict[str, Any]]:
        return rows(compacted / "root", kind)

    for kind in KINDS:
        found = rows(root, kind)
        assert new(found) == new(before(kind))
        if kind not in PARTLY:
            assert old(found) == []
    conns, links = living(before, "conn", "connection.closed"), living(before, "link", "link.detached")
    assert conns
    assert links
    assert {(row["boot"], row["conn"]) for row in old(rows(root, "connection.opened"))} == conns
    assert {(row["boot"], row["link"]) for row in old(rows(root, "link.attached"))} == links
    counts = old(rows(root, "delivery.interval"))
    last = {
        (row["boot"], row["link"]): row["n"]
        for row in old(before("delivery.interval"))
        if (row["boot"], row["link"]) in links
    }
    assert {(row["boot"], row["link"]): row["n"] for row in counts} == last
    assert len(counts) == len(last)
    assert sum(part.rows for part in summary.parts) == all_rows(compacted / "root").total() - all_rows(root).total()
    assert {part.what: part.days for part in prune(root, everything()).parts} == {}


def test_only_the_rows_of_the_tenant_are_removed(root: Path, compacted: Path) -> None:
    prune(root, everything(CUT, TENANT), really=True)
    before, after = all_rows(compacted / "root"), all_rows(root)
    assert after < before
    assert all(
        f"('vhost', '{TENANT}')" in row and any(f"('date', '2026-03-0{day}')" in row for day in (1, 2))
        for row in before - after
    )
    stayed = [row for kind in prunable([TENANT]) for row in old(rows(root, kind)) if row["vhost"] == TENANT]
    assert stayed
    assert {row["boot"] for row in stayed} == {max(row["boot"] for row in rows(root, "link.attached"))}
    assert len(old(rows(root, "sasl.outcome"))) == len(old(rows(compacted / "root", "sasl.outcome"))) > 0
    manifest = Records(root)
    assert {tuple(whose) for days in manifest.pruned.values() for whose in days.values()} == {(TENANT,)}
    prune(root, everything(), really=True)
    assert Records(root).pruned["link.detached"]["2026-03-01"] == [EVERYBODY, TENANT]


def test_nothing_is_missing_afterwards_and_nothing_comes_back(root: Path, compacted: Path) -> None:
    before = compact([compacted / "in"], root)
    prune(root, everything(), really=True)
    after = compact([compacted / "in"], root)
    assert (after.segments, after.records, after.errors) == (0, 0, [])
    assert after.gaps == before.gaps != []


def test_late_rows_of_days_that_were_pruned_are_reported_and_go_the_next_time(root: Path, tmp_path: Path) -> None:
    prune(root, everything(), really=True)
    scribe = Scribe(tmp_path / "late", "QDR.B", START + HOUR)
    scribe.write(login(START + HOUR, "bob", "192.0.2.1"))
    scribe.stop()
    (note,) = compact([tmp_path / "late"], root).notes
    assert note.startswith("there are new rows of 1 days, from 2026-03-01 on, whose former rows were pruned")
    assert [part.what for part in prune(root, everything(), really=True).parts] == ["sasl.outcome"]
    assert old(rows(root, "sasl.outcome")) == []


def test_files_that_are_replaced_stay_for_their_readers_or_go_at_once(root: Path) -> None:
    def files() -> set[Path]:
        return set((root / "records").rglob("*.parquet"))

    before = files()
    prune(root, Scope(CUT, (TENANT,), prunable([TENANT])), really=True)
    assert before < files()
    prune(root, everything(), really=True, at_once=True)
    assert files() == named(root)


def named(root: Path) -> set[Path]:
    """Return the files of the last version."""
    records = Records(root)
    assert records.version is not None
    return {Path(records.version.path(file)) for file in records.version.files}


def test_former_versions_have_the_rows_until_they_are_vacuumed(root: Path) -> None:
    before = Records(root)
    assert before.version is not None
    wanted = {row["n"] for row in rows(root, "sasl.outcome")}
    prune(root, changed(everything(), kinds=("sasl.outcome",)), really=True)
    former = Records(root, before.version.number)
    found = [row for path in former.paths("sasl.outcome") for row in pq.ParquetFile(path).read(["n"]).to_pylist()]
    assert {row["n"] for row in found} == wanted
    told = DeltaTable(str(root / "records")).history(1)[0]["trouter"]
    assert told == {"job": "prune", "before": "2026-03-03", "tenants": ["*"], "rows": {"sasl.outcome": 6}}
    former.folder.vacuum(0, really=True)
    assert not all(Path(path).exists() for path in former.paths("sasl.outcome"))


REFUSED = {
    "a day that is not over": (Scope(datetime.now(UTC).date() + timedelta(days=2)), "is not over"),
    "what others need": (Scope(CUT, kinds=("policy.loaded",)), "policy.loaded is never pruned: it says which rules"),
    "no kind": (Scope(CUT, kinds=("what",)), "what: there is no such kind of records"),
    "a kind without a tenant": (Scope(CUT, (TENANT,), ("clock.step",)), "clock.step has no tenant"),
    "an end alone": (Scope(CUT, kinds=("link.detached",)), "link.attached and link.detached must be pruned together"),
    "no table": (Scope(CUT, tables=("cards",)), "there is no table that is replaced by days"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_forbidden_scope_is_refused(root: Path, case: str) -> None:
    scope, why = REFUSED[case]
    with pytest.raises(Refused, match=why):
        prune(root, scope, really=True)
    assert Records(root).pruned == {}


def test_a_folder_that_is_none_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there are no records; is this the folder of a pipeline"):
        prune(tmp_path / "rooot", everything())
    assert list(tmp_path.iterdir()) == []


def made_of(root: Path, name: str, inputs: dict[str, int], **parameters: Any) -> None:
    nothing = pa.table({"date": pa.array([], pa.date32())})
    Table(root, name).commit(nothing, [], inputs=inputs, job="x", version=1, parameters=parameters)


def test_no_record_is_pruned_before_its_tables_are_made(root: Path) -> None:
    scope = changed(everything(), kinds=("latency.sketch", *MADE_OF["meter"]))
    notes = prune(root, scope).notes
    assert [note for note in notes if note.startswith("there is no table meter yet")]
    inputs = {name: facts.crc for name, facts in Records(root).segments.items()}
    first = min(name for name, facts in Records(root).segments.items() if facts.dates[0] == "2026-03-02")
    for table in ("meter", "meter_conn"):
        made_of(root, table, {name: crc for name, crc in inputs.items() if name != first})
    with pytest.raises(Refused, match=f"meter does not include 1 segments .*run `trouter pipeline meter {root}` first"):
        prune(root, scope, really=True)
    assert Records(root).pruned == {}
    for table in ("meter", "meter_conn"):
        made_of(root, table, inputs)
    assert prune(root, scope, really=True).notes == [
        f"{table} keeps its rows of 2 days from 2026-03-01 to 2026-03-02; no job computes these days again"
        for table in ("meter", "meter_conn")
    ]
    assert frozen_by(Records(root), "meter") == {date(2026, 3, 1), date(2026, 3, 2)}
    assert frozen_by(Records(root), "audit_alerts") == frozen_by(Records(root), "rollup_day") == frozenset()


def test_a_table_whose_rows_another_program_changed_is_not_pruned(root: Path) -> None:
    from trouter_pipeline.jobs import meter

    meter.run(InProcess(), root)
    DeltaTable(str(root / "tables/meter")).delete("dir = 'in'")
    for scope in (Scope(CUT, tables=("meter",)), everything()):
        with pytest.raises(BadTable, match=r"DELETE of another program changed rows, .*`.* meter --again`"):
            prune(root, scope, really=True)
    assert Records(root).pruned == {}


def test_records_that_another_program_deleted_are_missed_until_they_are_restored_or_accepted(
    root: Path, compacted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def metered() -> int:
        meter.run(InProcess(), root, meter.Parameters(again=True))
        return sum(Table(root, "meter").rows()["msgs"].to_pylist())

    def jobs() -> list[Callable[[], object]]:
        compacting = partial(compact, [compacted / "in"], root)
        return [compacting, metered, partial(prune, root, everything(), really=True)]

    from trouter_pipeline.jobs import meter

    whole, folder, before = metered(), str(root / "records"), Records(root).version
    assert before is not None
    DeltaTable(folder).delete("record = 'delivery.interval' AND date = '2026-03-02'")
    DeltaTable(folder).optimize.compact()
    why = rf"DELETE of another program changed records, .*restore version {before.number} .*--accept-changes`"
    for job in jobs():
        with pytest.raises(BadTable, match=why):
            job()
    DeltaTable(folder).restore(before.number)
    for job in jobs()[:2]:
        job()
    assert metered() == whole
    DeltaTable(folder).delete("record = 'delivery.interval' AND date = '2026-03-02'")
    command = ["pipeline", "compact", str(compacted / "in"), str(root), "--jobs", "1"]
    assert main(command) == 1
    assert main([*command, "--accept-changes"]) == 0
    assert "DELETE of another program changed records, and is accepted" in capsys.readouterr().err
    assert metered() < whole
    for job in jobs():
        job()


def test_segments_that_came_too_late_for_closed_days_are_no_reason_to_wait(root: Path) -> None:
    inputs = {name: facts.crc for name, facts in Records(root).segments.items() if facts.dates[-1] > "2026-03-02"}
    for table in ("meter", "meter_conn"):
        made_of(root, table, inputs, closed_before=CUT.isoformat())
    assert prune(root, changed(everything(), kinds=MADE_OF["meter"]), really=True).done


STEPS = ("staged", "placed", "before the commit", "after the commit")
KILLED = """
import os, signal, sys
from datetime import date
from pathlib import Path
from trouter_pipeline import delta, prune
step, root = sys.argv[1], Path(sys.argv[2])
def killing(home, name, *, before=False):
    former = getattr(home, name)
    def kill(*given, **named):
        if not before:
            former(*given, **named)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(home, name, kill)
if step == "staged":
    killing(prune, "write_part")
elif step == "placed":
    killing(delta, "sync")
else:
    killing(delta, "_write", before=step == "before the commit")
prune.prune(root, prune.Scope(date(2026, 3, 3), (), prune.prunable(())), really=True, at_once=True)
"""


@pytest.mark.parametrize("step", STEPS)
def test_a_prune_killed_at_any_step_leaves_all_records_or_none_of_the_pruned_ones(root: Path, step: str) -> None:
    before = all_rows(root)
    killed = subprocess.run([sys.executable, "-c", KILLED, step, str(root)], check=False)
    assert killed.returncode == -signal.SIGKILL
    after = all_rows(root)
    if step == "after the commit":
        assert after < before
    else:
        assert after == before
        assert Records(root).pruned == {}
    prune(root, everything(), really=True, at_once=True)
    assert all(
        row["date"] >= CUT.isoformat() for kind in set(KINDS) - set(PARTLY) - set(KEPT) for row in rows(root, kind)
    )
    assert set((root / "records").rglob("record=*/**/*.parquet")) >= named(root)


def test_the_command_shows_the_prune_and_then_prunes(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["pipeline", "prune", str(root), "--before", CUT.isoformat(), "--quiet"]
    assert main([*arguments, "--tenant", TENANT]) == 0
    captured = capsys.readouterr().out
    assert "Nothing was changed: --yes deletes these rows." in captured
    assert "delivery.interval                2  2026-03-01  2026-03-02" in captured
    assert main([*arguments, "--kind", "sasl.outcome", "--yes", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["done"], printed["parts"][0]["days"]) == (True, {"2026-03-01": 3, "2026-03-02": 3})
    assert main([*arguments, "--kind", "sasl.outcome"]) == 0
    assert capsys.readouterr().out == "There is nothing to delete.\n"
    assert main([*arguments, "--kind", "records.dropped"]) == 1
    assert "records.dropped is never pruned" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*arguments[:-2], "someday"])
    assert "argument --before: 'someday' is no date" in capsys.readouterr().err


def test_the_kinds_named_by_the_pruning_rules_exist() -> None:
    named = {
        *KEPT,
        *(kind for pair in TOGETHER for kind in pair),
        *(kind for kinds in MADE_OF.values() for kind in kinds),
    }
    assert named <= set(KINDS)
    assert set(JOBS) == set(MADE_OF)
    assert UNKNOWN in prunable(())
    assert all("vhost" in {column.name for column in columns_of(kind)} for kind in prunable([TENANT]))


# --- with Spark


@pytest.fixture
def quiet() -> Callable[[str], None]:
    return lambda _: None


def table_rows(spark: SparkSession, root: Path, name: str) -> Iterator[tuple[date, str]]:
    for row in Table(root, name).read(spark).collect():
        yield row["date"], str(sorted(row.asDict(recursive=True).items(), key=lambda item: item[0]))


def compare(
    spark: SparkSession, pruned: Path, whole: Path, names: tuple[str, ...], former: dict[str, list[Any]]
) -> None:
    """Check that both have the same after the cut, and that the pruned one keeps its earlier rows."""
    for name in names:
        mine, theirs = sorted(table_rows(spark, pruned, name)), sorted(table_rows(spark, whole, name))
        assert [row for row in mine if row[0] >= CUT] == [row for row in theirs if row[0] >= CUT], name
        assert [row for row in mine if row[0] < CUT] == [row for row in former[name] if row[0] < CUT], name
        assert [row for row in mine if row[0] < CUT], name


@pytest.mark.pipeline_long
def test_the_meter_of_later_days_and_of_pruned_days_is_the_same_after_pruning(
    spark: SparkSession, tmp_path: Path
) -> None:
    from trouter_pipeline.jobs import meter

    names = ("meter", "meter_conn")
    history(tmp_path / "in")
    made = segments(tmp_path / "in")
    late = tmp_path / "late"
    late.mkdir()
    compact([tmp_path / "in"], tmp_path / "all")
    days = {name: facts.dates for name, facts in Records(tmp_path / "all").segments.items()}
    for path in [path for path in made if days[path.name][-1] == "2026-03-04"][1:-1]:
        path.rename(late / path.name)
    early = next(path for path in made if days[path.name] == ("2026-03-01",))
    early.rename(late / early.name)
    whole, pruned = tmp_path / "root", tmp_path / "pruned"
    compact([tmp_path / "in"], whole)
    meter.run(InProcess(), whole)
    shutil.copytree(whole, pruned)
    former = {name: sorted(table_rows(spark, whole, name)) for name in names}
    assert prune(
        pruned,
        changed(everything(), kinds=tuple(dict.fromkeys((*MADE_OF["meter"], *MADE_OF["meter_conn"])))),
        really=True,
    ).done
    for root in (whole, pruned):
        compact([late], root)
    summary = meter.run(InProcess(), pruned)
    assert summary.too_late == [early.name]
    meter.run(InProcess(), whole)
    compare(spark, pruned, whole, names, former)
    assert meter.run(InProcess(), pruned).nothing == "all that is new is of days that are closed"
    meter.run(InProcess(), pruned, meter.Parameters(again=True))
    compare(spark, pruned, whole, names, former)


@pytest.mark.slow
@pytest.mark.pipeline_long
def test_other_tables_and_rows_of_tables(spark: SparkSession, tmp_path: Path) -> None:
    from trouter_pipeline.jobs import audit, latency, meter, rollup, top

    scribe = Scribe(tmp_path / "in")
    records: list[Record] = traffic(
        Ledger("QDR.A", scribe.boot), seed=1, begin=START, end=START + DAYS * DAY, connections=12, step=HOUR
    )
    midnight = START + 2 * DAY
    for at, user in ((START + HOUR, "first"), (midnight - MINUTE, "over"), (midnight + 9 * HOUR, "last")):
        records += [login(at + number * 3_000_000, user, "192.0.2.66") for number in range(40)]
    scribe.write_all(records, 60)
    scribe.stop()
    whole, pruned = tmp_path / "root", tmp_path / "pruned"
    late = segments(tmp_path / "in")[-2]
    (tmp_path / "late").mkdir()
    late = late.rename(tmp_path / "late" / late.name)
    compact([tmp_path / "in"], whole)

    def run(root: Path, **more: Any) -> None:
        meter.run(InProcess(), root)
        rollup.run(spark, root)
        top.run(spark, root)
        latency.run(spark, root)
        audit.run(spark, root, audit.Parameters(), lambda _: None)

    run(whole)
    names = ("audit_alerts",)
    former = {name: sorted(table_rows(spark, whole, name)) for name in (*names, "rollup_day", "top", "meter")}
    assert [row for row in former["audit_alerts"] if "'over'" in row[1]]
    shutil.copytree(whole, pruned)
    scope = Scope(CUT, (TENANT,), (), ("meter", "rollup_hour"))
    assert {part.what for part in prune(pruned, scope, really=True).parts} == {"table meter", "table rollup_hour"}
    prune(pruned, everything(), really=True)
    for root in (whole, pruned):
        compact([tmp_path / "late"], root)
        run(root)
    compare(spark, pruned, whole, names, former)
    assert sorted(table_rows(spark, pruned, "rollup_day")) == sorted(table_rows(spark, whole, "rollup_day"))
    assert sorted(table_rows(spark, pruned, "top")) == sorted(table_rows(spark, whole, "top"))
    left = sorted(table_rows(spark, pruned, "meter"))
    assert left == [
        row for row in sorted(table_rows(spark, whole, "meter")) if row[0] >= CUT or f"'{TENANT}'" not in row[1]
    ]
    assert {row[0] for row in former["meter"] if row[0] < CUT and f"'{TENANT}'" in row[1]}
    with pytest.raises(Refused, match="top has no column vhost"):
        prune(pruned, Scope(CUT, (TENANT,), (), ("top",)))
    assert prune(pruned, Scope(CUT, (), (), ("top",)), really=True).done
    top.run(spark, pruned, top.Parameters(again=True))
    assert min(row[0] for row in table_rows(spark, pruned, "top")) == CUT
