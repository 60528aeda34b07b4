"""The receiver under test: `python -m pipeline.bench.ours PORT FOLDER LINGER`; it prints its CPU time."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import trio

from trouter.client import Servers
from trouter_pipeline.spool import Spool
from trouter_pipeline.spool.receiver import Progress, ReceiverSettings, receive


async def run(port: str, folder: str, linger_s: float) -> None:
    progress = Progress()
    settings = ReceiverSettings(servers=Servers(urls=(f"amqp://127.0.0.1:{port}",)), address="bench", linger_s=linger_s)
    with Spool.open(Path(folder), backlog_bytes=1 << 40) as spool:
        async with trio.open_nursery() as nursery:
            began = time.process_time()
            nursery.start_soon(receive, spool, settings, progress)
            print("{}", flush=True)
            await trio.to_thread.run_sync(sys.stdin.readline)  # the line arrives when the sender has every outcome
            print(json.dumps({"cpu_s": time.process_time() - began, "groups": progress.groups}), flush=True)
            nursery.cancel_scope.cancel()


trio.run(run, sys.argv[1], sys.argv[2], float(sys.argv[3]))
