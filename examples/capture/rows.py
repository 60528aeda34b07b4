"""Print a merged table by source: `python examples/capture/rows.py ROOT NAME`. Needs duckdb and deltalake."""

import sys

import duckdb
from deltalake import DeltaTable

ROOT, NAME = sys.argv[1:3]
rows = DeltaTable(f"{ROOT}/tables/{NAME}").to_pyarrow_dataset()
deleted = DeltaTable(f"{ROOT}/tables/{NAME}_deleted").to_pyarrow_dataset()

for source, count, last, gone in duckdb.execute(
    "select address, count(*), max(change), (select count(*) from deleted where deleted.address = rows.address) "
    "from rows group by address order by address"
).fetchall():
    print(f"{source}: {count} rows, the last change is {last}; {gone} rows are deleted")
