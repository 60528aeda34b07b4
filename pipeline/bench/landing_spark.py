"""The Spark process of the landing chapter: `python -m pipeline.bench.landing_spark ours|theirs PORT:COUNT:FOLDER ...`.

For each round it prints a line when the round may begin; after a line on its input, one when theirs streams; at its end
one with the time when COUNT rows were in the table (`time.monotonic`), and the CPU of Spark, its workers and this
process.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pipeline.bench.landing_theirs import FramesSource
from trouter_pipeline.datasource import register
from trouter_pipeline.session import session

_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK_S = 0.02


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process and all its descendants, those that have ended included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = sum(int(each) for each in fields[11:15]) / _TICKS
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for task in Path(f"/proc/{pid}/task").iterdir():
        if task.name != str(pid):
            children += (task / "children").read_text().split()
    return own + sum(cpu_s(int(child)) for child in children)


def source(spark: SparkSession, side: str, port: str, folder: str) -> Any:
    """Return the input stream of one side."""
    if side == "ours":
        register(spark)
        options = {"url": f"amqp://127.0.0.1:{port}", "address": "bench", "spool": f"{folder}/spool"}
        return spark.readStream.format("amqp").options(**options).load()
    spark.dataSource.register(FramesSource)
    return spark.readStream.format("frames").option("file", f"{folder}/frames").load()


def land(spark: SparkSession, side: str, port: str, folder: str, count: int) -> None:
    """Stream until ``count`` rows are in a table, and print the time."""
    before_s = cpu_s(os.getpid())
    query = (
        source(spark, side, port, folder)
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(processingTime="0 seconds")
        .start(f"{folder}/table")
    )
    if side == "theirs":
        print("{}", flush=True)
    landed: dict[int, int] = {}
    while sum(landed.values()) < count:
        time.sleep(_LOOK_S)
        if query.exception() is not None:
            sys.exit(f"the query failed: {query.exception()}")
        landed |= {batch.batchId: batch.numInputRows for batch in query.recentProgress}
    landed_s = time.monotonic()
    took_s = cpu_s(os.getpid()) - before_s
    query.stop()
    if spark.read.parquet(f"{folder}/table").where("error IS NULL").count() != count:
        sys.exit("rows are missing")
    print(json.dumps({"landed_s": landed_s, "cpu_s": took_s, "batches": len(landed)}), flush=True)


def main(side: str, *rounds: str) -> None:
    spark = session("bench", master="local[2]", settings={"spark.driver.memory": "2g", "spark.ui.enabled": "false"})
    spark.sparkContext.setLogLevel("OFF")
    for each in rounds:
        port, count, folder = each.split(":", 2)
        print("{}", flush=True)
        sys.stdin.readline()
        land(spark, side, port, folder, int(count))
    sys.stdin.readline()
    spark.stop()


main(*sys.argv[1:])
