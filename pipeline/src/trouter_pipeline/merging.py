"""A Delta table with the last state of each row, merged from the batches of a stream of changes.

``NAME`` has a row for each key of each address, ``NAME_deleted`` the keys that are deleted, with the sequence of their
deletion, so that an older change that comes later does not bring a row back, and ``NAME_dead`` what is no change. The
first two are divided by address, and by a number that is made of the key. A batch writes the parts that it changes
again, from what they had and its changes: of each key the change with the greatest sequence stays. That does not depend
on the order of the changes, or how often they come; so a batch whose writer was killed is merged again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812  # its customary name
from pyspark.sql import types as T  # noqa: N812

from trouter_pipeline.changes import BUCKET, DELETED, FAULTS, Merge, column_of, quoted
from trouter_pipeline.delta import Folder, Version
from trouter_pipeline.files import TableBusy
from trouter_pipeline.landing import (
    BY_ADDRESS,
    DEAD,
    DEAD_SUFFIX,
    Part,
    bound,
    identity_of,
    known_parameters,
    require_name,
)
from trouter_pipeline.parquet import File, write, write_apart
from trouter_pipeline.places import Place, Where

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELETED_SUFFIX: Final = "_deleted"
#: The columns of the partition.
BY_BUCKET: Final = ("address", BUCKET)
BUCKETS: Final = 16
#: Columns of a message that say where it comes from, and not what the row is.
ORIGIN: Final = ("spool_id", "seq", "ingest_time", "message_id", "message_id_type")
#: How often a batch is merged if other writers change the same parts meanwhile.
_TRIES: Final = 5
_LAST: Final = "_last"
_IS_OLD: Final = "_is_old"
_NOW: Final = "_now"
_SOURCE: Final = "_source"


class Merging:
    """The tables of one stream of changes; ``held`` locks them."""

    def __init__(self, root: Where, name: str, merge: Merge, *, merge_schema: bool = False) -> None:
        """``merge_schema``: add columns that the tables lack, and let changes lack some of theirs. NotLanded."""
        require_name(name)
        self._merge_schema = merge_schema
        tables = Place.of(root) / "tables"
        self.folder = tables / name
        self._merge = merge
        self._keys = [column_of(each) for each in merge.keys]
        self._sequence = [column_of(each) for each in merge.sequence]
        self._main = Folder(self.folder)
        self._deleted = Folder(tables / (name + DELETED_SUFFIX))
        self._dead = Folder(tables / (name + DEAD_SUFFIX))
        self._versions: dict[Folder, Version] = {}
        self._query = ""
        self._buckets = BUCKETS

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the tables for this process; TableBusy, OSError."""
        with self._main.locked():
            yield

    def claim(self, checkpoint: Path, columns: Mapping[str, Any], parameters: Mapping[str, str]) -> None:
        """Bind the tables to a checkpoint and to the columns of changes, or verify that they are.

        NotLanded, BadTable, OSError.
        """
        known = known_parameters(self._main).get("buckets")
        self._buckets = self._merge.buckets or int(known or BUCKETS)
        identity = identity_of(
            checkpoint,
            {
                **parameters,
                "merge": ",".join(self._merge.keys),
                "sequence": ",".join(self._merge.sequence),
                "buckets": str(self._buckets),
            },
        )
        self._query = identity.checkpoint
        dead = {name: kind for name, kind in columns.items() if name != DELETED}
        main = {name: kind for name, kind in dead.items() if name not in {"date", *FAULTS}} | {BUCKET: "integer"}
        known_of_deleted = {*self._keys, *self._sequence, *ORIGIN, *BY_BUCKET}
        gone = {name: kind for name, kind in main.items() if name in known_of_deleted}
        for place, its_columns, partition in (
            (self._main, main, BY_BUCKET),
            (self._deleted, gone, BY_BUCKET),
            (self._dead, dead, BY_ADDRESS),
        ):
            self._versions[place] = bound(
                place, its_columns, partition, identity, checkpoint, merge_schema=self._merge_schema
            )

    def land(self, changes: DataFrame, batch: int) -> Counter[Part]:
        """Merge a batch of changes, unless it is there already; return the number of changes of each part.

        ``changes`` has the columns `address`, `date`, ``DEAD`` and ``DELETED``, and is computed once. TableBusy,
        BadTable, OSError, and Spark's errors.
        """
        if self._versions[self._main].last_batch(self._query) >= batch:
            return Counter()
        changes = changes.persist()
        try:
            counts = self._bury(changes.where(DEAD).drop(DELETED, DEAD), batch)
            good = self._in_parts(changes.where(~F.col(DEAD)))
            sizes = {
                (row["address"], str(row[BUCKET])): row["count"] for row in good.groupBy(*BY_BUCKET).count().collect()
            }
            for again in reversed(range(_TRIES)):
                try:
                    self._merge_parts(good, sizes, batch)
                    break
                except TableBusy:
                    if not again:
                        raise
                for place in (self._main, self._deleted):
                    self._versions[place] = place.last()
        finally:
            changes.unpersist()
        for (address, _), rows in sizes.items():
            counts[Part(address or "", False)] += rows
        return counts

    def _bury(self, dead: DataFrame, batch: int) -> Counter[Part]:
        """Land what is no change among the dead letters; return the number by address."""
        counts: Counter[Part] = Counter()
        with self._dead.staged() as staged:
            if placed := self._dead.place(staged, write(dead, staged, BY_ADDRESS)):
                self._commit(self._dead, placed, (), batch, {})
        for each in placed:
            counts[Part(each.partition[0] or "", True)] += each.rows
        return counts

    def _in_parts(self, changes: DataFrame) -> DataFrame:
        """Return changes with the columns of their part, and without those of dead letters."""
        bucket = F.pmod(F.xxhash64(*map(quoted, self._keys)), F.lit(self._buckets)).cast("int")
        address = F.nullif("address", F.lit(""))  # a partition cannot tell them apart
        return changes.drop("date", DEAD, *FAULTS).withColumn("address", address).withColumn(BUCKET, bucket)

    def _merge_parts(self, changes: DataFrame, sizes: Mapping[tuple[str | None, str], int], batch: int) -> None:
        """Write the parts of these changes again, and commit them; TableBusy if others changed them meanwhile."""
        main, deleted = self._versions[self._main], self._versions[self._deleted]
        old, gone = ([file for file in version.files if file.partition in sizes] for version in (main, deleted))
        spark = changes.sparkSession
        last = self._last(changes, main.frame(spark, old), deleted.frame(spark, gone))
        by_address: Counter[str] = Counter()
        for (address, _), rows in sizes.items():
            by_address[address or ""] += rows
        with self._main.staged() as kept, self._deleted.staged() as forgotten:
            staged = {False: kept, True: forgotten}
            written = write_apart(last, DELETED, {str(which): place for which, place in staged.items()}, BY_BUCKET)
            for folder, is_deleted, files in ((self._deleted, True, gone), (self._main, False, old)):
                placed = folder.place(staged[is_deleted], written[str(is_deleted)])
                if placed or files or not is_deleted:  # the table itself is last: it completes the batch
                    self._commit(folder, placed, files, batch, {"changes": dict(by_address)})

    def _last(self, changes: DataFrame, rows: DataFrame, gone: DataFrame) -> DataFrame:
        """Return the last state of each key: of changes, rows and deletions, which have the columns that they have."""
        kinds = {each.name: each.dataType for each in rows.schema}
        keys = list(dict.fromkeys([*BY_BUCKET, *self._keys]))
        content = [name for name in kinds if name not in {*keys, *self._sequence, *ORIGIN}]
        every = changes.withColumn(_IS_OLD, F.lit(False))
        for frame, is_deleted in ((rows, False), (gone, True)):
            old = frame.withColumns({DELETED: F.lit(is_deleted), _IS_OLD: F.lit(True)})
            every = every.unionByName(old, allowMissingColumns=True)
        order = F.struct(
            *map(quoted, self._sequence),
            DELETED,
            *(F.to_json(quoted(name)) if _has_map(kinds[name]) else F.col(quoted(name)) for name in content),
            _IS_OLD,  # a repetition changes nothing
        )
        value = F.struct(*(quoted(name) for name in [*kinds, DELETED] if name not in keys))
        parts = every.repartition(*BY_BUCKET)  # so that a part is one file
        found = parts.groupBy(*map(quoted, keys)).agg(F.max_by(value, order).alias(_LAST))
        last = found.select(*map(quoted, keys), f"{_LAST}.*")
        now = changes.groupBy(F.col("address").alias(_SOURCE)).agg(F.max("ingest_time").alias(_NOW))
        aged = last.join(F.broadcast(now), F.col("address").eqNullSafe(F.col(_SOURCE)))
        young = F.col("ingest_time") >= F.col(_NOW) - F.make_interval(hours=F.lit(self._merge.keep_deleted_h))
        kept = (
            F.when(~F.col(DELETED), F.col(quoted(name))).alias(name) if name in content else quoted(name)
            for name in last.columns
        )
        return aged.where(~F.col(DELETED) | young).select(*kept)

    def _commit(
        self, place: Folder, add: Sequence[File], remove: Sequence[File], batch: int, facts: Mapping[str, Any]
    ) -> None:
        base = self._versions[place]
        parts = set() if place is self._dead else {file.partition for file in (*add, *remove)}

        def clash(later: Version) -> str:
            if later.columns != base.columns:
                return "it has other columns"
            changed = {file.partition for file in {*base.files} ^ {*later.files}} & parts
            return f"it changed {len(changed)} of the parts that this batch changes" if changed else ""

        self._versions[place] = place.commit(
            base,
            add,
            remove,
            {"job": "land", "merge": self._keys, "checkpoint": self._query, "batch": batch, **facts},
            shown=f"trouter land, merged batch {batch}",
            batch=(self._query, batch),
            clash=clash,
        )


def _has_map(kind: T.DataType) -> bool:
    """Return whether values of a type have maps in them, which have no order."""
    return '"map"' in kind.json()
