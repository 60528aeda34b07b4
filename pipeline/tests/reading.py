"""A driver that reads spools on a cluster and says which worker read which shard.

    python -m pipeline.tests.reading MASTER SETTINGS SPOOL

SETTINGS are Spark's, as JSON. Written to standard output: for each shard and slice the rows and where they were read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from trouter_pipeline.datasource import register
from trouter_pipeline.session import session

if TYPE_CHECKING:
    import pyarrow as pa


def main(master: str, settings: str, spool: str) -> None:
    spark = session("reading", master=master, settings=json.loads(settings))
    register(spark)

    def place(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys as there
        from pathlib import Path

        import pyarrow as pa

        for batch in batches:
            decoding = there.modules["trouter_pipeline.decoding"].__file__
            facts = {"shard": batch["shard"], "seq": batch["seq"]}
            same = {"folder": [str(Path.cwd())] * batch.num_rows, "module": [decoding] * batch.num_rows}
            yield pa.RecordBatch.from_pydict({**facts, **same})

    rows = spark.read.format("amqp").option("spool", spool).option("receiver", "none").load()
    read = rows.select("shard", "seq").mapInArrow(place, "shard int, seq bigint, folder string, module string")
    found = read.groupBy("shard", "folder", "module").count().collect()
    sys.stdout.write(json.dumps([row.asDict() for row in found]) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
