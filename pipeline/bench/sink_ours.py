"""The sink's sending: `python -m pipeline.bench.sink_ours PORT SIZE COUNT WINDOW`; it prints its time and CPU."""

from __future__ import annotations

import json
import sys
import time

import pyarrow as pa

from trouter_pipeline.connecting import peers
from trouter_pipeline.messages import Encoder, RowPosition
from trouter_pipeline.options import Options, Side
from trouter_pipeline.sending import Terms, send_rows
from trouter_pipeline.sink import chunks

#: The size of Spark's batches.
_BATCH_ROWS = 10_000


def main() -> None:
    port, size, count, window = map(int, sys.argv[1:])
    batch = pa.RecordBatch.from_pydict({"body": pa.array([b"x" * size] * min(count, _BATCH_ROWS), pa.binary())})
    batches = [batch] * (count // batch.num_rows) + [batch.slice(0, count % batch.num_rows)]
    terms = Terms(peers(Options.parse({"url": f"amqp://127.0.0.1:{port}"}, Side.WRITE)), "bench", window)
    print("{}", flush=True)
    sys.stdin.readline()
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    tally = send_rows(terms, chunks(batches, Encoder(RowPosition("bench", 0, 0))))
    said = {"cpu_s": time.process_time() - cpu_s, "wall_s": time.perf_counter() - wall_s}
    if tally.accepted != count:
        sys.exit(f"{tally}: {tally.failure}")
    print(json.dumps(said), flush=True)
    sys.stdin.readline()


main()
