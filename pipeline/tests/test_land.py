"""`trouter pipeline land`: real spools into tables on Spark, each message once, also after a restart."""

from __future__ import annotations

import io
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import proton
import pyarrow as pa
import pytest
from fastavro.schema import fingerprint, to_parsing_canonical_form
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812  # its customary name

from pipeline.tests.kafkas import PATIENCE_S, Broker, mock_cluster
from pipeline.tests.landed import read_with_duckdb
from trouter.client import Message, Properties
from trouter_pipeline.datasource import register
from trouter_pipeline.delta import BadTable
from trouter_pipeline.jobs import fraud, land_again
from trouter_pipeline.jobs.land import Parameters, Summary, parted, run
from trouter_pipeline.kafka import local
from trouter_pipeline.kafka.settings import Settings
from trouter_pipeline.landing import DEAD, Landing, NotLanded, columns_of_rows, landed
from trouter_pipeline.repetitions import Firsts
from trouter_pipeline.spool import Spool, SpoolReplaced
from trouter_pipeline.spool.cursors import lags_of
from trouter_pipeline.streams import StreamFailed, run_to_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LATE = "Query a terminated with exception: Python worker failed to connect back."
#: 2026-01-31T23:59:59 and the second after.
EVE, MORNING = 1_769_903_999_000_000, 1_769_904_000_000_000


def fill(folder: Path, address: str, *messages: bytes, ingest_us: int = EVE) -> None:
    """Write messages as a receiver would."""
    spool = Spool.open(folder, address=address)
    for message in messages:
        spool.append(message, ingest_us=ingest_us)
    spool.sync()
    spool.close()


def letter(name: str | None, body: bytes = b"{}") -> bytes:
    return Message(body, properties=Properties(message_id=name)).encode()


SALE = {"type": "record", "name": "Sale", "fields": [{"name": "id", "type": "long"}]}


def sale(number: int) -> bytes:
    """Return a sale in Avro's single-object encoding."""
    code = bytes.fromhex(fingerprint(to_parsing_canonical_form(SALE), "CRC-64-AVRO"))
    body = io.BytesIO(b"\xc3\x01" + code)
    body.seek(10)
    fastavro.schemaless_writer(body, SALE, {"id": number})
    return body.getvalue()


def land(spark: SparkSession, root: Path, *spools: Path, **given: Any) -> Summary:
    return run(spark, root, Parameters(spools=list(map(str, spools)), **given))


def test_one_spool_is_landed_and_forwarded_at_the_pace_of_each(spark: SparkSession, tmp_path: Path) -> None:
    spool, root = tmp_path / "spool", tmp_path / "root"
    Spool.open(spool, address="changes", cursors=["tables", "kafka"]).close()
    fill(spool, "changes", *(letter(f"m{n}") for n in range(50)))
    with pytest.raises(NotLanded, match="has no cursor 'default'"):
        land(spark, root, spool)
    assert land(spark, root, spool, cursor="tables").rows == {"changes": 50}
    assert {lag.cursor: lag.messages for lag in lags_of(spool)} == {"tables": 0, "kafka": 50}
    fill(spool, "changes", *(letter(f"m{n}") for n in range(50, 60)))
    with mock_cluster() as bootstrap:
        Broker(bootstrap, makes_topics=True).create("changes")
        settings = Settings(bootstrap=bootstrap, topic="changes", timeout_s=PATIENCE_S)
        sent = local.run(settings, [str(spool)], {}, cursor="kafka", max_message=1 << 20)
        assert (sent.sent, sent.left) == ({"changes": 60}, 0)
    assert land(spark, root, spool, cursor="tables").rows == {"changes": 10}
    assert {lag.cursor: lag.messages for lag in lags_of(spool)} == {"tables": 0, "kafka": 0}
    assert land(spark, root, spool, cursor="tables") == Summary()


def test_every_message_lands_once_in_the_partition_of_its_source(spark: SparkSession, tmp_path: Path) -> None:
    east, west, root = tmp_path / "east", tmp_path / "west", tmp_path / "root"
    fill(east, "changes/east", *(letter(f"e{n}") for n in range(50)))
    fill(west, "changes/west", *(letter(f"w{n}") for n in range(30)), b"no message")
    first = land(spark, root, east, west)
    assert first.rows == {"changes/east": 50, "changes/west": 30}
    assert first.dead == {"changes/west": 1}
    fill(east, "changes/east", *(letter(f"e{n}") for n in range(50, 60)), ingest_us=MORNING)
    second = land(spark, root, east, west)
    assert (second.rows, second.dead) == ({"changes/east": 10}, {})
    assert land(spark, root, east, west) == Summary()
    with pytest.raises(NotLanded, match=r"and the rows have id string, .*: give --merge-schema"):  # nothing is new
        land(spark, root, east, west, body_format="json", schema="id string")
    everything = landed(spark, root, "landed").collect()
    assert Counter(row["message_id"] for row in everything) == Counter(
        [*(f"e{n}" for n in range(60)), *(f"w{n}" for n in range(30))]
    )
    assert {(row["address"], str(row["date"])) for row in everything} == {
        ("changes/east", "2026-01-31"), ("changes/east", "2026-02-01"), ("changes/west", "2026-01-31"),
    }  # fmt: skip
    (dead,) = landed(spark, root, "landed", dead=True).collect()
    assert (bytes(dead["raw"]), dead["seq"]) == (b"no message", 30)
    assert dead["error"]
    assert read_with_duckdb(root, "landed", "count(*), count(distinct (spool_id, seq))") == [(90, 90)]


def test_fraud_is_looked_for_in_landed_messages_once(spark: SparkSession, tmp_path: Path) -> None:
    spool, root = tmp_path / "spool", tmp_path / "root"
    bodies = [
        b'{"id":1,"card":"c","channel":"atm","amount":1.00,"t":"2026-01-31T10:00:00Z"}',
        b'{"id":2,"card":"c","channel":"pos","amount":900.00,"t":"2026-01-31T10:01:00Z"}',
    ]
    fill(spool, "cards", *(letter(f"m{n}", body) for n, body in enumerate(bodies)))
    columns = "id bigint, card string, channel string, amount decimal(10,2), t timestamp"
    land(spark, root, spool, name="cards", body_format="json", schema=columns)
    rows, inputs, read = fraud.of_table(spark, root, "cards")
    assert read == {"cards": Landing(root, "cards").version()}
    assert sorted(row["id"] for row in rows.collect()) == [1, 2]
    assert fraud.run(root, rows, fraud.Pattern(), print, inputs).nothing is None
    assert fraud.run(root, rows, fraud.Pattern(), print, fraud.of_table(spark, root, "cards")[1]).nothing
    fill(spool, "cards", letter("m2", bodies[0]))
    land(spark, root, spool, name="cards", body_format="json", schema=columns)
    assert list(inputs.values()) == [0]
    assert list(fraud.of_table(spark, root, "cards")[1].values()) == [1]
    with pytest.raises(BadTable, match="payments: this table is empty: no job has written it yet"):
        fraud.of_table(spark, root, "payments")


@pytest.mark.pipeline_long
def test_bodies_become_columns_and_unfit_bodies_become_dead_letters(spark: SparkSession, tmp_path: Path) -> None:
    spool, root = tmp_path / "spool", tmp_path / "root"
    bodies = [b'{"id":1,"amount":2.50}', b'{"id":"x"}', b'{"id":3}']
    a_map = bytes(proton.Message({"id": 4}, properties={"site": "x"}).encode())
    fill(spool, "sales", *(letter(f"m{n}", body) for n, body in enumerate(bodies)), a_map)
    given: dict[str, Any] = {"name": "sales", "body_format": "json", "schema": "id bigint, amount decimal(8,2)"}
    assert land(spark, root, spool, **given).rows == {"sales": 2}
    good = read_with_duckdb(root, "sales", "id, amount::varchar, message_id")
    assert sorted(good) == [(1, "2.50", "m0"), (3, None, "m2")]
    dead, of_map = landed(spark, root, "sales", dead=True).sort("seq").collect()
    assert (dead["dead_letter"]["reason"], bytes(dead["dead_letter"]["body"])) == (
        "Expected `int | null`, got `str` - at `$.id`",
        bodies[1],
    )
    assert of_map["dead_letter"]["reason"] == "the body is value, not bytes or text"
    assert bytes(of_map["dead_letter"]["message"]) == a_map
    assert of_map["dead_letter"]["application_properties"]["site"]["value"] == "x"
    fill(spool, "sales", letter("m3"))
    with pytest.raises(NotLanded, match=r"has id long, not id string, .* another --name"):
        land(spark, root, spool, **{**given, "schema": "id string, amount decimal(8,2)"})
    with pytest.raises(NotLanded, match="column subject is bigint, and the message's own is string"):
        land(spark, root, spool, name="other", body_format="json", schema="subject bigint")


@pytest.mark.pipeline_long
def test_a_run_that_is_ended_says_how_many_messages_wait(spark: SparkSession, tmp_path: Path) -> None:
    spool, root = tmp_path / "spool", tmp_path / "root"
    fill(spool, "a", letter("m1"), letter("m2"))
    parameters = Parameters(spools=[str(spool)])
    ended = run(spark, root, parameters, wants_to_end=lambda: True)
    assert ended.interrupted
    assert ended.left + ended.rows.total() == 2
    whole = run(spark, root, parameters)
    assert (ended.rows + whole.rows, whole.left, whole.interrupted) == ({"a": 2}, 0, False)


@pytest.mark.pipeline_long
def test_dead_letters_land_again_once_what_was_wrong_is_right(spark: SparkSession, tmp_path: Path) -> None:
    spool, root, file = tmp_path / "spool", tmp_path / "root", tmp_path / "sale.avsc"
    fill(spool, "sales", letter("m0", sale(7)), letter("m1", b"no avro"), letter("m2", sale(8)))
    file.write_text(json.dumps({**SALE, "fields": [{"name": "id", "type": "string"}]}))
    given: dict[str, Any] = {"name": "sales", "body_format": "avro", "schema": "id bigint"}
    given["avro_schema_file"] = str(file)
    assert land(spark, root, spool, **given).dead == {"sales": 3}
    file.write_text(json.dumps(SALE))
    parameters = Parameters(spools=[], **given)
    again = land_again.run(spark, root, parameters)
    assert (again.rows, again.dead) == ({"sales": 2}, 1)
    again = land_again.run(spark, root, parameters)
    assert (again.rows, again.dead) == ({}, 1)
    fill(spool, "sales", letter("m3", sale(9)))
    assert land(spark, root, spool, **given).rows == {"sales": 1}
    found = read_with_duckdb(root, "sales", "id, seq, message_id, address, date::varchar")
    assert sorted(found) == [(7 + n, seq, f"m{seq}", "sales", "2026-01-31") for n, seq in enumerate((0, 2, 3))]
    assert landed(spark, root, "sales", dead=True).count() == 3


@pytest.mark.pipeline_long
def test_a_message_sent_twice_lands_once_with_the_option(spark: SparkSession, tmp_path: Path) -> None:
    spool, other, root = tmp_path / "spool", tmp_path / "other", tmp_path / "root"
    nameless = [letter(None)] * 3
    fill(spool, "a", letter("m1"), letter("m2"), letter("m1"), *nameless)
    fill(other, "b", letter("m1"))
    first = land(spark, root, spool, other, deduplicate_within=1000)
    assert (first.rows, first.duplicates) == ({"a": 5, "b": 1}, 1)
    fill(spool, "a", letter("m2"), letter("m3"))
    second = land(spark, root, spool, other, deduplicate_within=1000)
    assert (second.rows, second.duplicates) == ({"a": 1}, 1)
    found = read_with_duckdb(root, "landed", "address, message_id")
    assert Counter(found) == Counter([("a", "m1"), ("a", "m2"), ("a", "m3"), *[("a", None)] * 3, ("b", "m1")])


@pytest.mark.pipeline_long
def test_repetitions_are_known_by_sequence_in_all_spools_of_an_address_and_whatever_the_clock_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    one, other, root = tmp_path / "one", tmp_path / "other", tmp_path / "root"
    given: dict[str, Any] = {"deduplicate_within": 4, "source": {"maxRowsPerBatch": "3"}}
    fill(one, "a", *(letter(f"m{n}") for n in range(6)), ingest_us=MORNING)
    fill(other, "a", letter("x"), b"no message")
    assert land(spark, root, one, other, **given).rows == {"a": 7}
    # among the last four of its own spool, and among the last four of the other; the rest is too long ago
    fill(one, "a", letter("m2"), letter("m1"), letter("x"), ingest_us=EVE)
    fill(other, "a", letter("m4"), letter("m1"), b"no message")
    again = land(spark, root, one, other, **given)
    assert (again.rows, again.dead, again.duplicates) == ({"a": 1}, {"a": 1}, 4)
    fill(one, "a", letter("m1"))
    nothing = land(spark, root, one, other, **given)
    assert (nothing.rows, nothing.duplicates) == ({}, 1)
    found = read_with_duckdb(root, "landed", "message_id")
    assert Counter(found) == Counter([("x",), ("m1",), *((f"m{n}",) for n in range(6))])


@pytest.mark.pipeline_long
def test_a_checkpoint_that_remembers_message_ids_by_time_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    spool, root = tmp_path / "spool", tmp_path / "root"
    checkpoint = root / "checkpoints/landed"
    fill(spool, "a", letter("m1"), letter("m2"))
    register(spark)
    rows = parted(spark.readStream.format("amqp").options(receiver="none", spool=str(spool)).load())
    by_time = rows.withColumn("_landed", F.current_timestamp()).withWatermark("_landed", "1 hour")
    by_time = by_time.dropDuplicatesWithinWatermark(["address", "message_id"]).drop("_landed")
    landing = Landing(root, "landed")

    def add(batch: DataFrame, number: int) -> None:
        landing.claim(checkpoint, columns_of_rows(batch), {"deduplicate": "3600"})
        landing.land(batch, number)

    writer = by_time.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.foreachBatch(add).start().awaitTermination()
    assert (checkpoint / "state").is_dir()
    fill(spool, "a", letter("m2"), letter("m3"))
    told: list[str] = []
    summary = run(spark, root, Parameters(spools=[str(spool)], deduplicate_within=100), told.append)
    assert (summary.rows, summary.duplicates) == ({"a": 1}, 1)
    assert f"{checkpoint} remembers message-ids by time: from now on the table does, by sequence" in told


def test_of_one_name_the_first_is_kept_and_each_that_is_further_away_than_the_window() -> None:
    rows = [
        *(("m", False, "one", seq) for seq in (0, 3, 4, 6, 9)),
        ("n", True, "one", 5),
        ("n", False, "one", 7),
        ("n", False, "one", 9),
        ("o", True, "other", 1),
        ("o", False, "one", 900),
        *((f"one/{seq}", False, "one", seq) for seq in (10, 11)),
    ]
    names = ("_name", "_landed", "spool_id", "seq")
    table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})
    table = table.append_column("address", pa.array(["a"] * len(rows))).append_column(
        DEAD, pa.array([False] * len(rows))
    )
    for size in (1, 3, 100):
        kept = Firsts(["_name", "seq"], 3)(iter(table.to_batches(max_chunksize=size)))
        found = [tuple(row.values()) for batch in kept for row in batch.to_pylist()]
        assert found == [("m", 0), ("m", 4), ("m", 9), ("n", 9), ("one/10", 10), ("one/11", 11)]


@pytest.mark.parametrize(
    ("failures", "reason"),
    [
        ([LATE, LATE, ""], None),
        ([LATE] * 4, "Python worker failed to connect back."),
        (["no room", ""], "no room"),
    ],
    ids=["late twice", "late again and again", "another failure"],
)
def test_a_query_whose_python_starts_late_is_started_again(failures: list[str], reason: str | None) -> None:
    queries: Any = iter(failures)

    def wait(failure: Any) -> None:
        if failure:
            raise StreamingQueryException(failure)

    if reason is None:
        ended: Any = run_to_end(queries.__next__, wait)
        assert [ended, *queries] == [failures[-1]]
    else:
        with pytest.raises(StreamFailed, match=reason):
            run_to_end(queries.__next__, wait)


def test_a_spool_that_was_replaced_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    spool, root = tmp_path / "spool", tmp_path / "root"
    fill(spool, "a", letter("m1"))
    land(spark, root, spool)
    shutil.rmtree(spool)
    fill(spool, "a", letter("m2"))
    with pytest.raises(NotLanded, match="spool"):
        land(spark, root, spool)
    assert read_with_duckdb(root, "landed", "message_id") == [("m1",)]


def test_a_spool_that_was_put_back_from_a_backup_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    spool, backup, root = tmp_path / "spool", tmp_path / "backup", tmp_path / "root"
    fill(spool, "a", *(letter(f"m{n}") for n in range(10)))
    shutil.copytree(spool, backup)
    fill(spool, "a", *(letter(f"m{n}") for n in range(10, 15)))
    assert land(spark, root, spool).rows == {"a": 15}
    shutil.rmtree(spool)
    backup.rename(spool)
    with pytest.raises(NotLanded, match="ends before message 10, and was read up to 15 before"):
        land(spark, root, spool)
    fill(spool, "a", *(letter(f"x{n}") for n in range(20)), ingest_us=MORNING)
    with pytest.raises(SpoolReplaced, match=f"message 14 of spool {spool} is another one than"):
        land(spark, root, spool)
    assert read_with_duckdb(root, "landed", "count(*)") == [(15,)]
