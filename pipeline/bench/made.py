"""Make a data set of the records of ``recorded``'s formula with DuckDB: a hundred million of them.

The data set is what compaction would write for the segments, with one file for each and the same table. It stays in
the work folder: `python -m pipeline.bench.made [COUNT]` makes it ahead of a measurement.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Final

from trouter.records.segments import segment_name
from trouter_pipeline.compact import facts_table
from trouter_pipeline.datasets import BY_KIND, SEGMENTS, SegmentFacts, columns_of, records_folder, table_columns
from trouter_pipeline.datasets import Records as Stored
from trouter_pipeline.delta import Folder
from trouter_pipeline.parquet import File, write_part

from .recorded import BEGIN_US, MINUTE_US, ROUTER, Faults, Records, faults_of

#: Where data sets stay from one measurement to the next: a hundred million records are 1.1 GB.
KEPT: Final = Path(__file__).parents[2] / "build" / "bench"
KIND: Final = "delivery.interval"
DATE: Final = "2026-03-01"
_BOOT: Final = BEGIN_US // 1_000_000
#: The formula by column, for columns that are neither null nor 0.
_MADE: Final = {
    "v": "1::INTEGER",
    "router": f"'{ROUTER}'",
    "boot": f"{_BOOT}::BIGINT",
    "seg": "$seg",
    "n": "n",
    "t": "make_timestamp(t0 + $minute)::TIMESTAMPTZ",
    "t_us": "t0 + $minute",
    "conn": "link // 5",
    "link": "link",
    "dir": "CASE link % 2 WHEN 1 THEN 'out' ELSE 'in' END",
    "t0": "t0",
    "t1": "t0 + $minute",
    "d_msgs": "moved",
    "d_accepted": "moved",
    "c_msgs": "total",
    "c_accepted": "total",
    "d_bytes": "moved * 100",
    "c_bytes": "total * 100",
    "final": "made.step = $steps - 1",
    "vhost": "'tenant-' || link // 50 % 40",
    "user": "'user-' || link // 50",
    "addr": "'queue/' || link % 5",
}


def kept(faults: Faults) -> tuple[Path, int]:
    """Return the data set in the work folder and the count of its records; make it if it is not there whole."""
    root = KEPT / f"records-{faults.records.count}"
    if not Stored(root).segments:
        shutil.rmtree(root, ignore_errors=True)
        make(root, faults)
    return root, sum(facts.count for facts in Stored(root).segments.values())


def make(root: Path, faults: Faults) -> int:
    """Write every segment but those that are lost, as a data set under ``root``; return the count of records."""
    import duckdb  # noqa: PLC0415  # not where records are made otherwise

    records = faults.records
    folder = Folder(records_folder(root))
    version = folder.create(table_columns(), BY_KIND)
    staged = folder.path / "_staging/made"
    place = f"record={KIND}/date={DATE}"
    Path(staged / place).mkdir(parents=True)
    written = []
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(
        "CREATE TABLE runs AS SELECT residue, step, "
        "sum(1 + (7 * residue + 13 * step) % 100) OVER (PARTITION BY residue ORDER BY step)::BIGINT AS total "
        f"FROM range(100) AS links(residue), range({records.steps}) AS steps(step)"
    )
    segments: dict[str, SegmentFacts] = {}
    for number in range(records.segments):
        if number in faults.lost:
            continue
        first = number * records.each
        name = segment_name(ROUTER, _BOOT, first)
        file = staged / f"{place}/{number:04}.parquet"
        connection.execute(f"COPY ({_query(records, first, name)}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")
        written.append(File(f"{place}/{number:04}.parquet", (KIND, DATE), records.each, Path(file).stat().st_size))
        last = first + records.each - 1
        segments[name] = SegmentFacts(
            router=ROUTER,
            boot=_BOOT,
            first=first,
            last=last,
            count=records.each,
            crc=number + 1,
            t_min=_told_us(records, first),
            t_max=_told_us(records, last),
            dates=(DATE,),
        )
    written.append(write_part(facts_table(segments), staged, {"record": SEGMENTS, "date": None}))
    folder.commit(version, folder.place(staged, written), (), {"job": "made"}, shown="made")
    return len(segments) * records.each


def _told_us(records: Records, n: int) -> int:
    step, link = divmod(n, records.links)
    return records.begun_us(link, step) + MINUTE_US


def _query(records: Records, first: int, segment: str) -> str:
    """Return the query for the rows of one segment; COPY takes no parameters."""
    none = {"string": "NULL::VARCHAR", "boolean": "false", "bigint": "0::BIGINT"}
    columns = ", ".join(
        f'{_MADE.get(column.name, none.get(column.type, "NULL"))} AS "{column.name}"' for column in columns_of(KIND)
    )
    query = (
        f"SELECT {columns} FROM (SELECT n, n // {records.links} AS step, n % {records.links} AS link, "
        f"1 + (7 * (n % {records.links}) + 13 * (n // {records.links})) % 100 AS moved, "
        f"{BEGIN_US} + n // {records.links} * $minute + n % {records.links} * $minute // {records.links} AS t0 "
        f"FROM range({first}, {first + records.each}) AS numbers(n)) AS made "
        "JOIN runs ON runs.residue = made.link % 100 AND runs.step = made.step"
    )
    named = {"$seg": f"'{segment}'", "$minute": str(MINUTE_US), "$steps": str(records.steps)}
    for name, value in named.items():
        query = query.replace(name, value)
    return query


if __name__ == "__main__":
    print(*kept(faults_of(int(sys.argv[1]) if sys.argv[1:] else 100_000_000)))
