"""The two programs of the crash ledger: one sends numbered messages until each was accepted, one lands them by Spark.

    python -m pipeline.tests.ledger send HOST:PORT ADDRESS COUNT
    python -m pipeline.tests.ledger land HOST:PORT ADDRESS FOLDER

`send` reports the count of accepted messages from time to time, and at the end how many it sent. `land` streams from a
spool in FOLDER into a Delta table beside it until a line arrives on its input, removes duplicates as the manual
describes, and writes the ledger as JSON. A test may kill it at any moment and start it again.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proton import Delivery, Message
from proton.handlers import MessagingHandler
from proton.reactor import Container

from pipeline.tests.small import MASTER, settings_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: `send` reports after this many accepted messages.
REPORT_EVERY = 2000
BODY_BYTES = 100


def report(what: object) -> None:
    """Write a line of JSON to standard output."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class Sender(MessagingHandler):
    """A sender that sends each message until it is accepted."""

    def __init__(self, url: str, address: str, count: int) -> None:
        super().__init__()
        self._where = (url, address)
        self._count = count
        self._next = 0
        self._again: deque[int] = deque()
        self._under_way: dict[Any, int] = {}
        self._accepted = bytearray(count)
        self.accepted = 0
        self.sent = 0

    def on_start(self, event: Any) -> None:
        self._connect(event.container)

    def _connect(self, container: Any) -> None:
        url, address = self._where
        container.create_sender(container.connect(url, heartbeat=30), address)

    def on_sendable(self, event: Any) -> None:
        self._fill(event.sender)

    def _fill(self, sender: Any) -> None:
        """Send as long as there is credit, first the messages that were not accepted."""
        while sender.credit and (self._again or self._next < self._count):
            if self._again:
                number = self._again.popleft()
            else:
                number = self._next
                self._next += 1
            message = Message(id=f"m{number}", body=b"%0*d" % (BODY_BYTES, number), inferred=True)
            self._under_way[sender.send(message)] = number
            self.sent += 1

    def on_disconnected(self, event: Any) -> None:
        """Send again what had no outcome when the router went."""
        self._again.extend(self._under_way.values())
        self._under_way.clear()

    def on_settled(self, event: Any) -> None:
        number = self._under_way.pop(event.delivery, None)
        if number is None:
            return
        if event.delivery.remote_state == Delivery.ACCEPTED:
            if not self._accepted[number]:
                self._accepted[number] = 1
                self.accepted += 1
                if self.accepted % REPORT_EVERY == 0:
                    report(self.accepted)
        else:
            self._again.append(number)
        if self.accepted == self._count:
            event.connection.close()
        else:
            self._fill(event.link)


def send(url: str, address: str, count: int) -> None:
    sender = Sender(url, address, count)
    Container(sender).run()
    report({"accepted": sender.accepted, "sent": sender.sent})


def land(url: str, address: str, folder: Path) -> None:
    from pyspark.sql import functions as f

    from trouter_pipeline.datasource import register
    from trouter_pipeline.jobs.land import parted
    from trouter_pipeline.landing import Landing, columns_of_rows, landed
    from trouter_pipeline.session import session

    spark = session("ledger", master=MASTER, settings=settings_in(folder))
    spark.sparkContext.setLogLevel("OFF")
    register(spark)
    given = {"url": f"amqp://{url}", "address": address, "spool": str(folder / "spool"), "maxRowsPerBatch": "20000"}
    stream = parted(spark.readStream.format("amqp").options(**given, lockWaitS="120").load())
    landing = Landing(folder, "ledger")

    def add(batch: DataFrame, number: int) -> None:
        landing.claim(folder / "checkpoint", columns_of_rows(stream), {})
        landing.land(batch, number)

    query = (
        stream.writeStream.foreachBatch(add)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="0 seconds")
        .start()
    )
    report("landing")
    finish = threading.Thread(target=sys.stdin.readline, daemon=True)
    finish.start()
    while finish.is_alive():
        finish.join(0.2)
        if query.exception() is not None:
            sys.exit(f"the query failed: {query.exception()}")
    query.processAllAvailable()
    query.stop()
    rows = landed(spark, folder, "ledger").unionByName(landed(spark, folder, "ledger", dead=True))
    copy = str(folder / "copy")
    rows.write.mode("overwrite").parquet(copy)
    once = (
        spark.readStream.schema(rows.schema)
        .parquet(copy)
        .withWatermark("ingest_time", "1 hour")
        .dropDuplicatesWithinWatermark(["message_id"])
    )
    done = (
        once.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint-once"))
        .trigger(availableNow=True)
        .start(str(folder / "once"))
    )
    done.awaitTermination()
    facts = rows.agg(
        f.count("*").alias("rows"),
        f.countDistinct("seq").alias("sequences"),
        f.max("seq").alias("last"),
        f.countDistinct("message_id").alias("ids"),
        f.count("error").alias("errors"),
    ).first()
    deduplicated = spark.read.parquet(str(folder / "once")).agg(
        f.count("*").alias("once"), f.countDistinct("message_id").alias("once_ids")
    )
    assert facts is not None
    report(facts.asDict() | deduplicated.collect()[0].asDict())
    spark.stop()


if __name__ == "__main__":
    role, where, named, last = sys.argv[1:]
    if role == "send":
        send(where, named, int(last))
    else:
        land(where, named, Path(last))
