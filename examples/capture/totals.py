"""Print the captured changes by source: `python examples/capture/totals.py ROOT`. Needs duckdb."""

import sys

import duckdb

FILES = f"{sys.argv[1]}/tables/landed/data/*/*/*/*.parquet"

for source, changes, last, amount in duckdb.execute(
    """
    select address, count(*), max(change), sum(amount)
    from read_parquet(?, hive_partitioning = true) group by address order by address
    """,
    [FILES],
).fetchall():
    print(f"{source}: {changes} changes, the last is {last}, amounts make {amount}")
