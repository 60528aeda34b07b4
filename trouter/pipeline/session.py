"""One way to get at Spark for every job: the same settings on a laptop and on a cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from trouter.pipeline.needs import Missing, missing_at_workers, require

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds for Spark and its Pythons to find each other, where the machine is busy: Spark's own 15 are few then.
PATIENCE_S: Final = 120
#: What every job leans on. Times are UTC; state is kept in RocksDB, which transformWithState needs.
SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.python.authenticate.socketTimeout": f"{PATIENCE_S}s",
}
#: On one machine nothing of Spark is for others: it listens for its own processes only.
LOOPBACK: Final = "127.0.0.1"
LOCAL_SETTINGS: Final = {"spark.driver.bindAddress": LOOPBACK, "spark.driver.host": LOOPBACK}
#: Into how many parts rows are dealt out; set here unless the user has set it.
PARTITIONS: Final = "spark.sql.shuffle.partitions"
#: Rows that one part of a job has at most: as many are sorted in the memory of a task without end of spilling.
ROWS_IN_PART: Final = 2_000_000
#: Set by spark-submit for the program that it runs.
SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"


def session(name: str, *, master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this process, made if there is none; Missing.

    master: as Spark names it; None takes what spark-submit was given, else ``local[*]``. settings: Spark's own, which
    go before ours. Workers run ``PYSPARK_PYTHON``, else what ``spark.pyspark.python`` names, else this Python: they
    must import what it imports, and on a cluster they are asked whether they do.
    """
    require()
    from pyspark.sql import SparkSession  # noqa: PLC0415  # only after it was seen to be there

    given = dict(settings or {})
    os.environ.setdefault("PYSPARK_PYTHON", given.get("spark.pyspark.python", sys.executable))
    builder = SparkSession.builder.appName(name)
    if master is None and SUBMITTED not in os.environ:
        master = given.get("spark.master", "local[*]")
    if master is not None:
        builder = builder.master(master)
    os.environ.setdefault("SPARK_AUTH_SOCKET_TIMEOUT", str(PATIENCE_S))  # the same for this process, which Spark asks
    local = on_one_machine(master)
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)  # else it says at each start that it looked for another
    for key, value in {**SETTINGS, **(LOCAL_SETTINGS if local else {}), **given}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    context = spark.sparkContext
    if on_one_machine(context.master):
        if context.getConf().get(PARTITIONS) is None:
            spark.conf.set(PARTITIONS, str(context.defaultParallelism))
    elif needs := missing_at_workers(spark):
        spark.stop()
        raise Missing("; ".join(f"{need.what}: {need.cure}" for need in needs))
    return spark


@contextmanager
def dealt_out(spark: SparkSession, rows: int) -> Iterator[None]:
    """Work on so many rows in parts that fit a task's memory, unless the user who started Spark set the number."""
    before = spark.conf.get(PARTITIONS)
    assert before is not None  # noqa: S101 - Spark has a default
    if spark.sparkContext.getConf().get(PARTITIONS) is None:
        spark.conf.set(PARTITIONS, str(max(int(before), -(-rows // ROWS_IN_PART))))
    try:
        yield
    finally:
        spark.conf.set(PARTITIONS, before)


def is_running() -> bool:
    """This process has Spark already, which `session` would share."""
    return "pyspark" in sys.modules and sys.modules["pyspark"].SparkContext._active_spark_context is not None


def on_one_machine(master: str | None) -> bool:
    """Spark runs in one process here."""
    return master is not None and (master == "local" or master.startswith("local["))
