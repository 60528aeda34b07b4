"""Messages that a sender sent twice, left out by message-id within a window of sequences.

The spool numbers its messages, so what is near is counted in messages and not in time: no clock has a part in it, and
a landing that was behind, or stopped, compares the same messages. What has landed is in the table, which is therefore
the memory; there is no other state, and a batch that comes again after a crash is compared with the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  # its customary name

from trouter_pipeline.landing import DEAD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What names a message beside its address; `_NAME` is made of the id, or of the sequence without one.
_NAME: Final = "_name"
_LANDED: Final = "_landed"
_KEY: Final = ("address", DEAD, _NAME)
#: The columns of landed rows that are compared.
_COMPARED: Final = ("address", "message_id", "message_id_type", "spool_id", "seq")


def without_repetitions(
    batch: DataFrame, landed: Mapping[bool, DataFrame], begins: Mapping[str, int], within: int
) -> DataFrame:
    """Return the rows of a batch without those whose message-id came before.

    That is, from the same address, among the ``within`` messages before it in its spool; or in another spool, among the
    last ``within`` before the batch or in it. Rows are compared with rows, and dead letters with dead letters.
    ``landed`` has the landed rows, and under True the dead letters. ``begins`` has the batch's first sequence by spool.
    """
    before = reduce(
        or_,
        (
            (F.col("spool_id") == spool) & F.col("seq").between(first - within, first - 1)
            for spool, first in begins.items()
        ),
        F.lit(False),
    )
    rows = batch.withColumn(_LANDED, F.lit(False))
    for dead, frame in landed.items():
        old = frame.where(before & F.col("message_id").isNotNull()).select(*_COMPARED)
        old = old.withColumn(DEAD, F.lit(dead)).withColumn(_LANDED, F.lit(True))
        rows = rows.unionByName(old, allowMissingColumns=True)
    itself = F.concat_ws("/", "spool_id", F.col("seq").cast("string"))
    named = F.coalesce(
        F.concat(F.lit("id "), "message_id_type", F.lit(" "), F.col("message_id").cast("string")), itself
    )
    rows = rows.withColumn(_NAME, named).repartition(*_KEY)
    rows = rows.sortWithinPartitions(*_KEY, F.col(_LANDED).desc(), "spool_id", "seq")
    return rows.mapInArrow(Firsts(batch.columns, within), batch.schema)


@dataclass(frozen=True)
class Firsts:
    """Selects, of rows that are sorted by what names them, those that are new. A task has one."""

    columns: Sequence[str]
    within: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the columns of the new rows."""
        key, last = None, dict[str, int]()  # the last kept sequence of the key in each spool
        for batch in batches:
            compared = [batch.column(name).to_pylist() for name in (*_KEY, _LANDED, "spool_id", "seq")]
            keeps = []
            for address, dead, name, landed, spool, seq in zip(*compared, strict=True):
                if (address, dead, name) != key:
                    key, last = (address, dead, name), {}
                new = not landed and not any(
                    other != spool or seq - kept <= self.within for other, kept in last.items()
                )
                if new or landed:
                    last[spool] = seq
                keeps.append(new)
            yield batch.filter(pa.array(keeps, pa.bool_())).select(list(self.columns))
