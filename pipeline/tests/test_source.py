"""``format("amqp")`` read on Spark: on its oldest supported version, and the newest (`make test-spark40`)."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import proton
import pyspark
import pytest
from pyspark.errors import PySparkException

from pipeline.tests.spooled import INGEST_US, fill, numbered, send
from tests.routers import DEADLINE_S, PLAIN_LISTENER, running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Whether this Spark lets a source limit its reads.
ADMISSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2]) >= (4, 2)
BAD = [b"", b"garbage", numbered(1)[0][:-1]]


def over(amqp: SparkSession, spool: Path, **options: str) -> DataFrame:
    return amqp.read.format("amqp").options(receiver="none", spool=str(spool), **options).load()


def test_every_kind_of_column_comes_through_spark(amqp: SparkSession, tmp_path: Path) -> None:
    sent = proton.Message(
        id=proton.ulong(2**64 - 1),
        subject="größe",
        priority=9,
        creation_time=1_700_000_000,
        properties={"n": proton.ulong(2**64 - 1)},
        annotations={proton.symbol("x-opt-a"): [1, None]},
        body={"k": proton.char("x")},
    )
    parts = proton.Message(body=b"one", inferred=True).encode() + b"\0\x53\x75\xa0\x03two"
    fill(tmp_path / "s", [bytes(sent.encode()), bytes(parts), *BAD])
    full, data, *bad = over(amqp, tmp_path / "s", readParallelism="3").orderBy("seq").collect()
    assert (full.seq, full.shard, full.address, full.delivery_tag, full.settled) == (0, 0, "orders", b"tag", False)
    assert full.ingest_time.astimezone(UTC) == datetime.fromtimestamp(INGEST_US / 10**6, UTC)
    assert (full.message_id, full.message_id_type, full.subject) == (str(2**64 - 1), "ulong", "größe")
    assert (full.header.priority, full.header.ttl) == (9, None)
    assert full.creation_time.astimezone(UTC) == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert full.application_properties["n"].asDict() == {"type": "ulong", "value": str(2**64 - 1)}
    assert full.message_annotations["x-opt-a"].asDict() == {"type": "list", "value": '[{"$long":"1"},null]'}
    assert (full.body_kind, full.body_value) == ("value", '{"$map":[["k",{"$char":"x"}]]}')
    assert (data.body, data.body_parts, data.body_kind) == (b"onetwo", [b"one", b"two"], "data")
    assert [row.raw for row in bad] == BAD
    assert all(row.error and row.body_kind is None for row in bad)


def test_an_error_reaches_the_user_and_no_secret_does(
    amqp: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(tmp_path / "s", numbered(1))
    secrets = {"url": "amqp://user:hidden@host", "password": "hidden", "tlsKeyPassword": "hidden"}
    over(amqp, tmp_path / "s", **secrets).explain(extended=True)
    plan = capsys.readouterr().out
    assert "amqp" in plan
    assert "hidden" not in plan
    with pytest.raises(PySparkException, match="there is no option 'maxrowperbatch', did you mean maxRowsPerBatch"):
        over(amqp, tmp_path / "s", maxRowPerBatch="5").count()
    with pytest.raises(PySparkException, match="Is the folder on this machine, or mounted"):
        over(amqp, tmp_path / "nothing", **secrets).count()


def start(frame: DataFrame, folder: Path, **trigger: Any) -> Any:
    return (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(**trigger)
        .start(str(folder / "landed"))
    )


def landed(amqp: SparkSession, folder: Path) -> list[tuple[str, int, int]]:
    rows = amqp.read.parquet(str(folder / "landed")).select("spool_id", "seq", "body").collect()
    return sorted((row.spool_id, row.seq, int(row.body)) for row in rows)


def test_a_stream_over_shards_stays_within_its_limit_and_lands_each_row_once(
    amqp: SparkSession, tmp_path: Path
) -> None:
    first = fill(tmp_path / "s" / "0", numbered(40))
    second = fill(tmp_path / "s" / "1", numbered(10, first=40), shard=1)
    frame = (
        amqp.readStream.format("amqp").options(receiver="none", spool=str(tmp_path / "s"), maxRowsPerBatch="20").load()
    )
    query = start(frame, tmp_path, **({"availableNow": True} if ADMISSION else {"processingTime": "0 seconds"}))
    if ADMISSION:
        assert query.awaitTermination(DEADLINE_S * 3)
    else:
        query.processAllAvailable()
        query.stop()
    sizes = [progress["numInputRows"] for progress in query.recentProgress]
    assert max(sizes) == 20
    assert landed(amqp, tmp_path) == sorted(
        [(first, number, number) for number in range(40)] + [(second, number, 40 + number) for number in range(10)]
    )


def test_a_stream_with_its_own_receiver_goes_on_at_its_checkpoint(amqp: SparkSession, tmp_path: Path) -> None:
    with running(PLAIN_LISTENER, tmp_path) as router:
        url = f"127.0.0.1:{router.port}"
        frame = (
            amqp.readStream.format("amqp")
            .options(url=f"amqp://{url}", address="orders", spool=str(tmp_path / "spool"))
            .load()
        )
        for first in (0, 30):
            query = start(frame, tmp_path, processingTime="0 seconds")
            sender = threading.Thread(target=send, args=(url, "orders", 30, first))
            sender.start()
            sender.join(DEADLINE_S * 3)
            query.processAllAvailable()
            query.stop()
        found = landed(amqp, tmp_path)
    assert sorted({body for _, _, body in found}) == list(range(60))
    assert [seq for _, seq, _ in found] == list(range(len(found)))
