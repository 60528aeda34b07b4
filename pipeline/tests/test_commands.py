"""The jobs as commands, as users run them, on small data with some findings."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.tests.attacked import login
from pipeline.tests.generate import HOUR, MINUTE, SECOND, START, Scribe
from pipeline.tests.served import TOKEN, served
from pipeline.tests.spooled import INGEST_US, fill
from pipeline.tests.test_latency import sketch
from pipeline.tests.test_topology import down, lost_often, up
from tests.routers import ROOT
from trouter.cli import main
from trouter.client import Message
from trouter_pipeline.compact import compact, here
from trouter_pipeline.needs import missing
from trouter_pipeline.spool.cursors import add_cursor, lags_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(bool(missing()), reason="; ".join(need.what for need in missing())),
]

SMALL = [
    "--master=local[2]",
    *("--conf=spark.driver.memory=1g", "--conf=spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
    *("--conf=spark.sql.shuffle.partitions=2", "--conf=spark.ui.enabled=false"),
]
SCHEMA = "card STRING, t TIMESTAMP, id BIGINT, channel STRING, amount STRING, city STRING"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def run(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run `trouter pipeline` with these words in the folder."""
    done = subprocess.run(
        [sys.executable, "-m", "trouter", "pipeline", *map(str, words), *SMALL],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    for code in ("/trouter/cli/", "/trouter_pipeline/commands/"):
        assert code not in done.stderr, done.stderr  # no unexpected exception
    return done


def printed(done: subprocess.CompletedProcess[str]) -> list[Any]:
    """Return the lines of JSON that were printed."""
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def payment(number: int, card: str | None, minute: int, channel: str, amount: str) -> dict[str, Any]:
    t = NOON + timedelta(minutes=minute)
    return {"id": number, "card": card, "t": t, "channel": channel, "amount": amount, "city": "Ulm"}


#: One fraud, and payments that are none: too late, not small, without a card.
PAYMENTS = [
    payment(1, "tested", 0, "online", "1.00"),
    payment(2, "tested", 60, "atm", "500.00"),
    payment(3, "late", 0, "online", "1.00"),
    payment(4, "late", 61, "atm", "600"),
    payment(5, "dear", 0, "online", "2.01"),
    payment(6, "dear", 1, "atm", "600"),
    payment(7, None, 1, "atm", "600"),
]


def encoded(payments: Sequence[Mapping[str, Any]]) -> list[bytes]:
    return [Message(json.dumps({**each, "t": each["t"].isoformat()}).encode()).encode() for each in payments]


@pytest.mark.usefixtures("spark")
def test_fraud_in_files_is_shown_as_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    payments = tmp_path / "payments.parquet"
    pq.write_table(pa.Table.from_pylist(PAYMENTS), payments)
    assert main(["pipeline", "fraud", str(tmp_path), "--events", str(payments), "--place", "city", "--quiet"]) == 0
    shown = capsys.readouterr()
    title, heads, _, row = shown.out.rstrip().splitlines()
    assert title == "Frauds"
    assert heads.split()[:4] == ["key", "large_id", "tester_id", "tester_t"]
    assert row.split() == [
        *("tested", "2", "1", "2026-03-01", "12:00", "2026-03-01", "13:00", "1.000000", "500.000000", "Ulm", "Ulm")
    ]
    assert "1 payments have no card, time, id or amount" in shown.err


@pytest.mark.pipeline_long
@pytest.mark.usefixtures("spark")
def test_a_fraud_stream_over_a_served_spool_goes_on_at_its_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    command = ["pipeline", "fraud", str(tmp_path), "--schema", SCHEMA, "--checkpoint", str(tmp_path / "checkpoint")]
    command += ["--late-by", "86400", "--cursor", "fraud", "--json", "--quiet"]
    spool, backup = tmp_path / "spool", tmp_path / "backup"
    fill(spool, [*encoded(PAYMENTS[:3]), Message(b"no json").encode(), b"garbage"])
    add_cursor(spool, "fraud")
    with served(spool, "--token-file", str(tmp_path / "token")) as url:
        from_server = [*command, "--spool", url, "--spool-token-file", str(tmp_path / "token")]
        assert main(from_server) == 0
        shutil.copytree(spool, backup)
        fill(spool, encoded([payment(8, "late", 10, "atm", "501")]))
        assert main(from_server) == 0
    found = map(json.loads, capsys.readouterr().out.splitlines())
    assert [(row["key"], row["large_id"]) for row in found] == [("tested", "2"), ("late", "8")]
    assert {lag.cursor: lag.messages for lag in lags_of(spool)} == {"default": 6, "fraud": 0}
    shutil.rmtree(spool)
    backup.rename(spool)
    fill(spool, encoded(PAYMENTS[:3]), ingest_us=INGEST_US + 1)
    assert main([*command, "--spool", str(spool)]) == 1
    assert f"message 5 of spool {spool} is another one than the query of" in capsys.readouterr().err


FAULTS: dict[str, tuple[list[str], str]] = {
    "no spool": (
        ["--spool", "nothing", "--schema", SCHEMA, "--checkpoint", "c"],
        "trouter pipeline fraud: no spool is visible in nothing. Is the folder on this machine, or mounted?",
    ),
    "a schema that is none": (
        ["--events", "payments.parquet", "--body", "city", "--schema", "a b c"],
        "trouter pipeline fraud: the schema 'a b c' is none: [PARSE_SYNTAX_ERROR]",
    ),
    "a column that is not there": (
        ["--events", "payments.parquet", "--body", "nobody", "--schema", SCHEMA],
        "trouter pipeline fraud: the events have no column 'nobody'; they have id, card, t, channel, amount, city",
    ),
    "no events": (["--events", "nothing.parquet"], "trouter pipeline fraud: nothing.parquet: [PATH_NOT_FOUND]"),
    "a file of another format": (["--events", "broken.parquet"], "trouter pipeline fraud: [FAILED_READ_FILE"),
    "an unknown format": (
        ["--events", "payments.parquet", "--format", "nosuch"],
        "trouter pipeline fraud: [DATA_SOURCE_NOT_FOUND]",
    ),
}


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=[pytest.mark.pipeline_long] * (fault == "no spool")) for fault in FAULTS]
)
def test_each_fault_is_reported_in_one_line(
    spark: SparkSession,
    tmp_path: Path,
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words, reason = FAULTS[fault]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "root").mkdir()
    pq.write_table(pa.Table.from_pylist(PAYMENTS), tmp_path / "payments.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"no such thing")
    # Spark is in the folder where it was started
    paths = [str(tmp_path / word) if word.endswith(".parquet") else word for word in words]
    assert main(["pipeline", "fraud", "root", *paths, "--quiet"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.replace(f"{tmp_path}/", "").rstrip().splitlines()
    assert line.startswith(reason)


def recorded(folder: Path, *records: Any) -> None:
    """Write records of a router, compacted under `root`."""
    scribe = Scribe(folder / "segments")
    scribe.write_all(sorted(records, key=lambda record: record.t), 60)
    scribe.stop()
    compact([folder / "segments"], folder / "root", run=here)


@pytest.mark.pipeline_long
def test_an_audit_of_compacted_records_ends_by_itself_and_goes_on_later(tmp_path: Path) -> None:
    recorded(tmp_path, *(login(START + n * SECOND, "mallory", "h") for n in range(30)), login(START + HOUR, "a", "b"))
    command = ["audit", "root", "--stream", "--checkpoint", "checkpoint", "--json", "--quiet"]
    alerts = printed(run(tmp_path, *command))
    assert {(row["rule"], row["user"], row["host"]) for row in alerts} == {("brute-force", "mallory", "h")}
    assert [row["ended"] for row in sorted(alerts, key=lambda row: row["failures"])] == [False, True]
    assert printed(run(tmp_path, *command)) == []


@pytest.mark.pipeline_long
def test_latency_and_topology_show_the_requested_days(tmp_path: Path) -> None:
    recorded(
        tmp_path,
        *(sketch(START + minute * MINUTE, [100, 200, 400], addr="orders") for minute in range(3)),
        *lost_often("flapping", 5, 60 * SECOND),
        up(START, "steady"),
        down(START + 2 * HOUR, "steady"),
    )
    (hour,) = printed(run(tmp_path, "latency", "root", "--json"))
    assert (hour["addr"], hour["cnt"], hour["max_us"]) == ("orders", 9, 400)
    shown = run(tmp_path, "latency", "root", "--quiet")
    assert shown.stdout.startswith("Deliveries, and microseconds until they were settled\n")
    assert "nothing is new" in shown.stderr
    assert run(tmp_path, "latency", "root", "--since", "2100-01-01").stdout.count("\n") == 1
    rows = printed(run(tmp_path, "topology", "root", "--json", "--quiet"))
    assert {row["peer"] for row in rows if row["flap"]} == {"flapping"}
    assert [row["peer"] for row in rows if not row["flap"]] == ["steady"]
    often = run(tmp_path, "topology", "root", "--flaps", "6", "--quiet")
    assert "yes" not in often.stdout
    assert "flapping" in often.stdout
