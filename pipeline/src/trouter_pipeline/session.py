"""Spark sessions for every job: the same settings on a laptop and on a cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from trouter_pipeline.needs import Missing, is_this_python, lines, require
from trouter_pipeline.workers import missing_at_workers, paths_of_ours

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds for Spark and its Pythons to connect; Spark's default of 15 is too short on a busy machine.
PATIENCE_S: Final = 120
#: Settings of every job. Times are UTC; state is kept in RocksDB, which transformWithState needs.
SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.python.authenticate.socketTimeout": f"{PATIENCE_S}s",
    # Rows for a Python: with Spark's 64 MB a task fills new memory with each batch, at twice the CPU for rows of 10 kB.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(8 << 20),
}
#: On one machine Spark listens for its own processes only.
LOOPBACK: Final = "127.0.0.1"
LOCAL_SETTINGS: Final = {"spark.driver.bindAddress": LOOPBACK, "spark.driver.host": LOOPBACK}
#: The number of partitions of a shuffle; set here unless the user has set it.
PARTITIONS: Final = "spark.sql.shuffle.partitions"
#: Rows in a partition that a task can sort in its memory without much spilling.
ROWS_IN_PART: Final = 2_000_000
#: Spark Connect: a session without a context of its own, so nothing of the jobs runs beside Spark.
CONNECT: Final = "sc://"
NOT_REMOTE: Final = (
    "jobs commit their tables beside Spark's own process, which Spark Connect keeps at its server: name the cluster "
    "itself with --master, without spark.remote and SPARK_REMOTE; your own queries read format('amqp') there as well"
)
#: Set by spark-submit for the program that it runs.
SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"


def session(name: str, *, master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return the session of this process, made if there is none; Missing.

    ``master`` is in Spark's spelling; None takes that of spark-submit, else ``local[*]``. ``settings`` are Spark's own,
    and override ours. Workers run ``PYSPARK_PYTHON``, else ``spark.pyspark.python``, else this Python; on a cluster
    they are checked for the packages that the jobs need.
    """
    spark = unchecked_session(name, master=master, settings=settings)
    if not on_one_machine(spark.sparkContext.master) and (needs := missing_at_workers(spark)):
        spark.stop()
        raise Missing("; ".join(lines(needs)))
    return spark


def unchecked_session(
    name: str, *, master: str | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Return the same without a look at the workers of a cluster; Missing if Spark cannot run here."""
    given = dict(settings or {})
    if (master or "").startswith(CONNECT) or "spark.remote" in given or "SPARK_REMOTE" in os.environ:
        raise Missing(NOT_REMOTE)
    if master is None and SUBMITTED not in os.environ:
        master = given.get("spark.master", "local[*]")
    local = on_one_machine(master)
    os.environ.setdefault("PYSPARK_PYTHON", given.get("spark.pyspark.python", sys.executable))
    other = not local and not is_this_python(os.environ["PYSPARK_PYTHON"])
    if other:
        os.environ["PYTHONPATH"] = _with_ours(os.environ.get("PYTHONPATH"))
    require()
    from pyspark.sql import SparkSession  # noqa: PLC0415  # only after it was seen to be there

    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    os.environ.setdefault("SPARK_AUTH_SOCKET_TIMEOUT", str(PATIENCE_S))  # for this process, which Spark connects to
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)  # otherwise Spark logs a search for another
    for key, value in {**SETTINGS, **(LOCAL_SETTINGS if local else {}), **given}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    context = spark.sparkContext
    if other and SUBMITTED in os.environ:  # Spark's own process began before, with another environment
        context.environment["PYTHONPATH"] = _with_ours(context.environment.get("PYTHONPATH"))
    if on_one_machine(context.master) and context.getConf().get(PARTITIONS) is None:
        spark.conf.set(PARTITIONS, str(context.defaultParallelism))
    return spark


def _with_ours(paths: str | None) -> str:
    """Return paths of imports with those of our packages: Spark plans a source with the workers' Python, here too."""
    return os.pathsep.join([*([paths] if paths else []), *paths_of_ours()])


@contextmanager
def dealt_out(spark: SparkSession, rows: int, fewest: int | None = None) -> Iterator[None]:
    """Set enough partitions for this number of rows to fit a task's memory, unless the user set their number.

    There are as many as now at least, or ``fewest``: each costs a task, however few rows it has.
    """
    before = spark.conf.get(PARTITIONS)
    assert before is not None  # noqa: S101 - Spark has a default
    if spark.sparkContext.getConf().get(PARTITIONS) is None:
        spark.conf.set(PARTITIONS, str(max(int(before) if fewest is None else fewest, -(-rows // ROWS_IN_PART))))
    try:
        yield
    finally:
        spark.conf.set(PARTITIONS, before)


def is_running() -> bool:
    """Return whether this process has a Spark session already, which `session` would share."""
    return "pyspark" in sys.modules and sys.modules["pyspark"].SparkContext._active_spark_context is not None


def is_gone() -> bool:
    """Return whether the Java process of this process's session has ended, though nothing here has stopped it."""
    if not is_running():
        return False
    from pyspark import SparkContext  # noqa: PLC0415  # it is there

    try:
        return not SparkContext.getOrCreate().version
    except Exception:  # noqa: BLE001  # py4j raises many types when the process does not answer
        return True


def on_one_machine(master: str | None) -> bool:
    """Return whether Spark runs in one process on this machine."""
    return master is not None and (master == "local" or master.startswith("local["))
