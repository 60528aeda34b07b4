"""Print the captured changes by source: `python examples/capture/totals.py ROOT`. Needs duckdb and deltalake."""

import sys

import duckdb
from deltalake import DeltaTable

landed = DeltaTable(f"{sys.argv[1]}/tables/landed").to_pyarrow_dataset()

for source, changes, last, amount in duckdb.execute(
    "select address, count(*), max(change), sum(amount) from landed group by address order by address"
).fetchall():
    print(f"{source}: {changes} changes, the last is {last}, amounts make {amount}")
