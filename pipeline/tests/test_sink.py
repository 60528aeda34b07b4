"""``write.format("amqp")`` on Spark: to real routers, read by python-qpid-proton."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from proton.handlers import MessagingHandler
from proton.reactor import ApplicationEvent, Container, EventInjector
from pyspark.errors import PySparkException

from tests.routers import DEADLINE_S, PLAIN_LISTENER, RunningRouter, running
from trouter_pipeline.options import BadOption, Options, Side
from trouter_pipeline.sending import Tally
from trouter_pipeline.sink import AmqpStreamWriter, AmqpWriter, Sent, as_batches, chunks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


BODY = "cast(id as string) body"


class Taker(MessagingHandler):
    """A receiver that accepts or rejects each message, as the test sets."""

    def __init__(self, url: str, address: str, takes: Callable[[Any], bool]) -> None:
        super().__init__(prefetch=100, auto_accept=False)
        self._where = (url, address)
        self._takes = takes
        self.messages: list[Any] = []
        self.attached = threading.Event()
        self._injector = EventInjector()

    def on_start(self, event: Any) -> None:
        url, address = self._where
        event.container.selectable(self._injector)
        self.connection = event.container.connect(url)
        event.container.create_receiver(self.connection, address)

    def on_link_opened(self, event: Any) -> None:
        self.attached.set()

    def on_message(self, event: Any) -> None:
        self.messages.append(event.message)
        if self._takes(event.message):
            self.accept(event.delivery)
        else:
            self.reject(event.delivery)

    def finish(self) -> None:
        """Close the connection, from another thread."""
        self._injector.trigger(ApplicationEvent("enough"))

    def on_enough(self, event: Any) -> None:
        self.connection.close()
        self._injector.close()

    @property
    def ids(self) -> list[str]:
        return [message.id for message in self.messages]


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with running(PLAIN_LISTENER, tmp_path_factory.mktemp("router")) as started:
        yield started


@contextmanager
def taking(router: RunningRouter, address: str, takes: Callable[[Any], bool] = lambda _: True) -> Iterator[Taker]:
    taker = Taker(f"amqp://127.0.0.1:{router.port}", address, takes)
    thread = threading.Thread(target=Container(taker).run)
    thread.start()
    assert taker.attached.wait(DEADLINE_S)
    try:
        yield taker
    finally:
        taker.finish()
        thread.join(DEADLINE_S)


def send(router: RunningRouter, frame: DataFrame, address: str, **options: object) -> None:
    url = f"amqp://127.0.0.1:{router.port}"
    given = {"url": url, "address": address, **{name: str(value) for name, value in options.items()}}
    frame.write.format("amqp").options(**given).mode("append").save()


def test_a_batch_arrives_whole_with_its_ids(amqp: SparkSession, router: RunningRouter) -> None:
    frame = amqp.range(0, 3000, 1, 2).selectExpr(
        "cast(concat('body ', id) as binary) body",
        "map('id', id) application_properties",
        "named_struct('durable', true) header",
    )
    with taking(router, "batch") as taker:
        send(router, frame, "batch", idPrefix="job-7", window=50)
    assert Counter(taker.ids) == Counter(f"job-7/0/{part}/{row}" for part in (0, 1) for row in range(1500))
    first = next(message for message in taker.messages if message.id == "job-7/0/1/0")
    assert bytes(first.body) == b"body 1500"
    assert first.durable is True
    assert first.properties == {
        "id": 1500, "spark-query": "job-7", "spark-batch": 0, "spark-partition": 1, "spark-row": 0,
    }  # fmt: skip


def test_rejected_rows_fail_the_batch_once_and_are_named(amqp: SparkSession, router: RunningRouter) -> None:
    frame = amqp.range(0, 40, 1, 2).selectExpr("cast(id as string) body")
    fault = "NotAccepted: the batch to picky: 36 rows accepted, 4 refused: "
    with (
        taking(router, "picky", lambda message: int(message.body) % 10 != 3) as taker,
        pytest.raises(PySparkException, match=fault) as caught,
    ):
        send(router, frame, "picky")
    assert "partition 0, row 3: rejected" in str(caught.value)
    assert "partition 1, row 13: rejected" in str(caught.value)
    assert Counter(message.body for message in taker.messages) == Counter(map(str, range(40)))


def test_dead_letters_are_kept_and_the_batch_is_done(amqp: SparkSession, router: RunningRouter) -> None:
    frame = amqp.range(0, 20, 1, 2).selectExpr("cast(id as string) body")
    with taking(router, "choosy", lambda message: int(message.body) % 10 != 3), taking(router, "graves") as graves:
        send(router, frame, "choosy", onReject="deadletter", deadLetterAddress="graves")
    assert sorted(message.body for message in graves.messages) == ["13", "3"]
    assert {message.annotations["x-opt-refused-by"] for message in graves.messages} == {"choosy"}


@pytest.mark.parametrize(
    ("columns", "options", "reason"),
    [
        ("id body2", {}, "a message has no field for column 'body2': did you mean body?"),
        (BODY, {"windo": 3}, "there is no option 'windo', did you mean window?"),
        (BODY, {"tlsTrustFile": "/nowhere"}, "tlsTrustFile: /nowhere: No such file or directory"),
        (BODY, {"url": "amqp://127.0.0.1:1", "settleTimeoutS": 0.2}, "no settlement progress for 0.2 s"),
        (
            BODY,
            {"saslMechanisms": "PLAIN", "user": "u", "password": "geheim"},
            "the server offers the SASL mechanisms ANONYMOUS",
        ),
    ],
)
def test_an_unsendable_row_is_reported_and_never_retried(
    amqp: SparkSession, router: RunningRouter, columns: str, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(PySparkException, match=re.escape(reason)) as caught:
        send(router, amqp.range(0, 1, 1, 1).selectExpr(columns), "nobody", **options)
    assert "geheim" not in str(caught.value)


def test_a_stream_numbers_its_rows_by_batch_and_goes_on_at_its_checkpoint(
    amqp: SparkSession, router: RunningRouter, tmp_path: Path
) -> None:
    lines, checkpoint = tmp_path / "lines", tmp_path / "checkpoint"
    lines.mkdir()

    def run(name: str, *, refuse: str = "") -> tuple[str, Taker]:
        (lines / name).write_text("".join(f"{name} {number}\n" for number in range(50)))
        frame = amqp.readStream.format("text").load(str(lines)).selectExpr("cast(value as binary) body")
        with taking(router, "stream", lambda message: bytes(message.body).decode() != refuse) as taker:
            query = (
                frame.writeStream.format("amqp")
                .options(url=f"amqp://127.0.0.1:{router.port}", address="stream", checkpointLocation=str(checkpoint))
                .trigger(availableNow=True)
                .start()
            )
            try:
                query.awaitTermination()
            except PySparkException as failure:
                return str(failure), taker
        return str(query.id), taker

    query, first = run("a")
    assert first.ids == [f"{query}/0/0/{row}" for row in range(50)]
    failure, second = run("b", refuse="b 20")
    assert "NotAccepted: micro-batch 1 to stream: 49 rows accepted, 1 refused: partition 0, row 20: rejected" in failure
    assert second.ids == [f"{query}/1/0/{row}" for row in range(50)]
    again, third = run("c")
    assert (again, third.ids[:50]) == (query, second.ids)
    assert [bytes(message.body) for message in third.messages[50:]] == [f"c {number}".encode() for number in range(50)]


def options(**given: str) -> Options:
    return Options.parse({"url": "amqp://127.0.0.1:1", "address": "a", **given}, Side.WRITE)


def test_nothing_that_was_sent_can_be_overwritten() -> None:
    from pyspark.sql.types import BinaryType, StructField, StructType

    schema = StructType([StructField("body", BinaryType())])
    for writer in (AmqpWriter, AmqpStreamWriter):
        with pytest.raises(BadOption, match="cannot be overwritten"):
            writer(options(), schema, True)


def test_rows_of_an_old_spark_are_made_batches() -> None:
    """Streams get rows before Spark 4.1."""
    from pyspark.sql import Row
    from pyspark.sql.types import BinaryType, MapType, StringType, StructField, StructType

    header = StructType([StructField("subject", StringType())])
    schema = StructType(
        [
            StructField("body", BinaryType()),
            StructField("application_properties", MapType(StringType(), StringType())),
            StructField("header", header),
        ]
    )
    rows = [
        Row(body=bytearray(b"%d" % n), application_properties={"k": "v"}, header=Row(subject="s")) for n in range(1500)
    ]
    first, second = as_batches(iter(rows), schema)
    assert (first.num_rows, second.num_rows) == (1024, 476)
    assert first.slice(0, 1).to_pylist() == [
        {"body": b"0", "application_properties": [("k", "v")], "header": {"subject": "s"}}
    ]
    (same,) = as_batches(iter([first]), schema)
    assert same is first


def test_large_rows_are_encoded_a_few_at_a_time() -> None:
    class Counting:
        def encode(self, batch: pa.RecordBatch) -> list[bytes]:
            return [b""] * batch.num_rows

    batch = pa.RecordBatch.from_pydict({"body": [b"x" * 1_000_000] * 10})
    assert list(map(len, chunks([batch], Counting()))) == [4, 4, 2]  # type: ignore[arg-type]
    assert list(map(len, chunks([batch.slice(0, 0)], Counting()))) == []  # type: ignore[arg-type]


def test_tallies_add_up_and_stay_bounded() -> None:
    tally = Tally()
    for _ in range(3):
        other = Tally(rows=100, accepted=20, refused=80, reasons=[f"row {n}: no" for n in range(80)])
        tally.add(other)
    assert (tally.rows, tally.accepted, tally.refused, len(tally.reasons)) == (300, 60, 240, 100)
    assert str(tally) == "60 rows accepted, 240 refused"
    assert Sent(0, tally).tally is tally
