"""Run one shard of `trouter pipeline spool --shards`; see `running`."""

from __future__ import annotations

import sys

import trio

from trouter_pipeline.spool.running import run_shard

if __name__ == "__main__":
    sys.exit(trio.run(run_shard, sys.stdin.readline()))
