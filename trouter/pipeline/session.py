"""One way to get at Spark for every job: the same settings on a laptop and on a cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from trouter.pipeline.needs import require

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What every job leans on. Times are UTC; state is kept in RocksDB, which transformWithState needs.
SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.ui.showConsoleProgress": "false",
}


def session(name: str, *, master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this process, made if there is none; Missing.

    master: as Spark names it; None takes what spark-submit gave, else ``local[*]``. settings: Spark's own, which go
    before ours. Workers run this Python, for they must import what it imports.
    """
    require()
    from pyspark.sql import SparkSession  # noqa: PLC0415  # only after it was seen to be there

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master or "SPARK_ENV_LOADED" not in os.environ:
        builder = builder.master(master or "local[*]")
    chosen = {**SETTINGS, **(settings or {})}
    if (master or "local").startswith("local"):
        chosen.setdefault("spark.sql.shuffle.partitions", str(os.cpu_count() or 2))
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
