"""Commands whose ROOT is in an object store: from spools and segments to the report, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from pipeline.tests.generate import MINUTE, START, Ledger, Scribe, overlap, segments, traffic
from pipeline.tests.readers import Readers
from pipeline.tests.stores import BUCKET, SECRET, Store, running
from pipeline.tests.test_land import fill
from tests.routers import ROOT
from trouter.cli import main
from trouter.client import Message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with running() as found:
        yield found


@pytest.fixture(autouse=True)
def environment(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    yield
    store.recovers()


def pipeline(*words: object) -> int:
    try:
        return main(["pipeline", *map(str, words)])
    except SystemExit as ended:
        return int(ended.code or 0)


def test_messages_land_once_also_when_the_store_was_away(
    spark: SparkSession, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spool = tmp_path / "spool"
    land = ["land", "--spool", spool, "--out", f"s3://{BUCKET}/messages", "--quiet"]
    assert pipeline(*land) == 1
    assert "give --checkpoint DIR, the same one each time" in capsys.readouterr().err
    land += ["--checkpoint", tmp_path / "checkpoint", "--storage-option", "max_retries=1"]
    fill(spool, "changes/east", *(Message(b"{}").encode() for _ in range(20)), b"no message")
    assert pipeline(*land) == 0
    fill(spool, "changes/east", *(Message(b"{}").encode() for _ in range(10)))
    store.fails(method="*", holding="_delta_log/00000000000000000002.json", times=1000)
    assert pipeline(*land) == 1
    said = capsys.readouterr().err
    assert "the store does not answer as it should" in said
    assert f"s3://{BUCKET}/messages/tables/landed" in said
    assert SECRET not in said
    store.recovers()
    assert pipeline(*land) == 0
    assert "10 rows and 0 dead letters" in capsys.readouterr().out
    assert pipeline(*land) == 0
    assert "nothing new" in capsys.readouterr().out
    landed = pl.scan_delta(f"s3://{BUCKET}/messages/tables/landed", storage_options=store.plain).collect()
    assert sorted(landed["seq"]) == [*range(20), *range(21, 31)]
    assert set(landed["address"]) == {"changes/east"}
    dead = pl.scan_delta(f"s3://{BUCKET}/messages/tables/landed_dead", storage_options=store.plain).collect()
    assert dead["seq"].to_list() == [20]
    from trouter_pipeline.landing import landed as rows_of
    from trouter_pipeline.places import Place

    assert rows_of(spark, Place.of(f"s3://{BUCKET}/messages"), "landed").where("seq < 5").count() == 5


def test_changes_are_merged_into_a_table_of_their_last_states(
    spark: SparkSession, store: Store, tmp_path: Path
) -> None:
    spool, uri = tmp_path / "spool", f"s3://{BUCKET}/changes"
    land = ["land", "--spool", spool, "--out", uri, "--checkpoint", tmp_path / "checkpoint", "--name", "t", "--quiet"]
    land += ["--body", "json", "--schema", "id bigint, change bigint", "--merge", "id", "--sequence", "change"]
    for numbers in ((1, 2), (5, 4), (3,)):
        fill(spool, "east", *(Message(b'{"id": %d, "change": %d}' % (n % 2, n)).encode() for n in numbers))
        assert pipeline(*land) == 0
    merged = pl.scan_delta(f"{uri}/tables/t", storage_options=store.plain).collect()
    assert sorted(merged.select("id", "change").rows()) == [(0, 4), (1, 5)]


def test_records_become_tables_and_a_report(
    spark: SparkSession, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = f"s3://{BUCKET}/records"
    scribe = Scribe(tmp_path / "segments")
    ledger = Ledger("QDR.A", 1)
    scribe.write_all(traffic(ledger, seed=1, end=START + 30 * MINUTE, connections=6), 100)
    scribe.stop()
    assert pipeline("compact", tmp_path / "segments", uri, "--quiet", "--jobs", "1") == 0
    assert pipeline("compact", tmp_path / "segments", uri, "--quiet", "--jobs", "1") == 0
    assert "0 segments with 0 new records" in capsys.readouterr().out
    assert pipeline("meter", uri, "--quiet") == 0
    metered = pl.scan_delta(f"{uri}/tables/meter", storage_options=store.plain).collect()
    assert metered["msgs"].sum() == ledger.total()
    assert pipeline("meter", uri, "--quiet", "--again", "--engine", "duckdb") == 0
    again = pl.scan_delta(f"{uri}/tables/meter", storage_options=store.plain).collect()
    assert sorted(again.rows(), key=str) == sorted(metered.rows(), key=str)
    for action in ("rollup", "top"):
        assert pipeline(action, uri, "--quiet") == 0
    assert pipeline("report", uri, "--out", f"{uri}/report.html") == 0
    assert f"The report is in {uri}/report.html." in capsys.readouterr().out
    assert b"<title>What the routers carried</title>" in store.get("records/report.html")
    assert pipeline("publish", uri, "--quota", "acme=1/month:1", "--dry-run") == 0
    assert pipeline("publish", uri, "--quota", "acme=1/month:1", "--url", "amqp://127.0.0.1:1") == 1
    assert "give --book DIR" in capsys.readouterr().err
    before = datetime.now(UTC).date() - timedelta(days=1)
    assert pipeline("prune", uri, "--before", before, "--yes", "--quiet") == 0
    assert "These rows are deleted." in capsys.readouterr().out
    assert pipeline("vacuum", uri, "--keep", "0", "--yes") == 0
    assert "files are deleted." in capsys.readouterr().out
    assert pl.scan_delta(f"{uri}/tables/meter", storage_options=store.plain).collect()["msgs"].sum() > 0


def test_no_thread_of_arrow_is_left_with_a_file_of_the_store_when_a_command_ends(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that let go of it while Python ended would end the process by SIGABRT."""
    readers = Readers(monkeypatch)
    root = f"s3://{BUCKET}/threads"
    scribe = Scribe(tmp_path / "segments")
    ledger = Ledger("QDR.A", 1)
    scribe.write_all(traffic(ledger, seed=1, end=START + 30 * MINUTE, connections=6), 40)
    scribe.drop(**{"link.attached": 1})
    scribe.stop()
    first, second, *_ = segments(tmp_path / "segments")
    backup = overlap(first, second, tmp_path / "backup")
    for words in (
        ["compact", tmp_path / "segments", root, "--quiet", "--jobs", "1"],
        ["compact", backup.parent, root, "--quiet", "--jobs", "1"],
        ["meter", root, "--quiet", "--engine", "duckdb"],
        ["report", root, "--out", f"{root}/report.html"],
        ["publish", root, "--quota", "acme=1/month:1", "--dry-run"],
        ["prune", root, "--before", datetime.now(UTC).date() - timedelta(days=1), "--yes", "--quiet"],
        ["vacuum", root, "--keep", "0", "--yes"],
    ):
        assert pipeline(*words) == 0, words
        assert readers.threads <= {threading.main_thread().name}, words
        assert not readers.held, words
    assert readers.opened
    metered = pl.scan_delta(f"{root}/tables/meter", storage_options=store.plain).collect()
    assert metered["msgs"].sum() == ledger.total()


def test_secrets_on_the_command_line_are_covered(store: Store, tmp_path: Path) -> None:
    options = tmp_path / "options"
    options.write_text("".join(f"{name}={value}\n" for name, value in store.plain.items() if "secret" not in name))
    code = "import sys; from trouter.cli import main; main(sys.argv[1:]); print(open('/proc/self/cmdline').read())"
    given = ["--storage-options-file", options, "--storage-option", f"aws_secret_access_key={SECRET}"]
    done = subprocess.run(
        [sys.executable, "-c", code, "pipeline", "vacuum", f"s3://{BUCKET}/none", *map(str, given)],
        capture_output=True,
        text=True,
        check=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        | {"PYTHONPATH": str(ROOT)},
    )
    assert "There is nothing to delete in 0 tables." in done.stdout
    assert "--storage-options-file" in done.stdout
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["report", "hdfs://host/x"], "hdfs:// is no place for tables"),
        (["report", "s3://k:secret@lake/x"], "give credentials by storage options"),
        (["report", "folder", "--storage-option", "aws_region=x"], "storage options are for a URI"),
        (["report", "s3://lake/x", "--storage-option", "aws_region"], "write KEY=VALUE"),
        (["compact", "s3://lake/segments", "root"], "this is a folder of this machine; only tables may be elsewhere"),
        (["spool", "--url", "amqp://h", "--address", "a", "--dir", "s3://lake/spool"], "only tables may be elsewhere"),
        (["land", "--spool", "s3://lake/spool", "--out", "root"], "only tables may be elsewhere"),
        (["audit", "s3://lake/x", "--stream", "--checkpoint", "s3://lake/c"], "only tables may be elsewhere"),
    ],
)
def test_what_cannot_be_in_a_store_is_refused(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert pipeline(*words) != 0
    said = capsys.readouterr().err
    assert why in said
    assert "secret" not in said
    assert not list(tmp_path.iterdir())


def test_a_file_with_options_that_cannot_be_read_is_named_without_its_contents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = tmp_path / "options"
    assert pipeline("report", "s3://lake/x", "--storage-options-file", options) == 2
    assert f"{options}: No such file or directory" in capsys.readouterr().err
    options.write_text("# ours\n\naws_region=x\nthis is a secret\n")
    assert pipeline("report", "s3://lake/x", "--storage-options-file", options) == 2
    said = capsys.readouterr().err
    assert f"{options}, line 4: write KEY=VALUE" in said
    assert "this is a secret" not in said


def test_wrong_credentials_end_every_command_with_the_cure(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody-else")
    scribe = Scribe(tmp_path / "segments")
    scribe.write_all(traffic(Ledger("QDR.A", 1), seed=1, end=START + 5 * MINUTE, connections=1))
    scribe.stop()
    uri = f"s3://{BUCKET}/guarded"
    out = tmp_path / "out.html"
    for words in (
        ["compact", tmp_path / "segments", uri, "--quiet"],
        ["meter", uri, "--quiet", "--engine", "duckdb"],
        ["prune", uri, "--before", "2026-03-01", "--quiet"],
        ["vacuum", uri],
        ["publish", uri, "--quota", "acme=1/month:1", "--dry-run"],
        ["report", uri, "--out", out],
    ):
        assert pipeline(*words) == 1, words
        captured = capsys.readouterr()
        assert f"s3://{BUCKET}/guarded" in captured.err
        assert "access is denied: correct the storage options" in captured.err
        assert SECRET not in captured.err + captured.out
