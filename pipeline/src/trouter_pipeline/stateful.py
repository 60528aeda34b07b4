"""Runs a detector on Spark: over a table, sorted by Spark, or over a stream, with its state in Spark's store.

Both give the same result for the same rows, in any order and any batches (``detector.py``). A stream needs a watermark
on a time column beside the columns of the detector; Spark drops and counts later rows.

From 4.1 on Spark passes Python rows, 4.0 only frames of pandas; the result is the same.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pyspark.sql import GroupedData
from pyspark.sql import Row as SparkRow
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import StructType

from trouter_pipeline.detector import Detector, Row, judged_in_order, step

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame

#: The stored state of a subject, and the time of its timer.
_STATE = "kept binary, timer_ms bigint"
#: Rows of a batch for Spark.
_ROWS = 4096


def detect(frame: DataFrame, detector: Detector, as_of: int | None = None) -> DataFrame:
    """Return a detector's output for ``frame``; with ``as_of`` (microseconds, tables only), expire at that time."""
    return _in_stream(frame, detector) if frame.isStreaming else _in_table(frame, detector, as_of)


def _in_table(frame: DataFrame, detector: Detector, as_of: int | None) -> DataFrame:
    """Return the output for a table: each subject is judged in one task, row by row."""
    import pyarrow as pa  # noqa: PLC0415  # a stream of rows needs none here

    columns = (*detector.keys, *detector.columns)
    width = len(detector.keys)
    output = _type_of(detector)
    schema = to_arrow_schema(output)

    def judged_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[Row] = []
        for key, rows in groupby(_rows_of(batches, columns), key=lambda row: row[:width]):
            for row in judged_in_order(detector, key, (each[width:] for each in rows), as_of):
                waiting.append(row)
                if len(waiting) == _ROWS:
                    yield _batch_of(waiting)
                    waiting = []
        if waiting:
            yield _batch_of(waiting)

    def _batch_of(rows: list[Row]) -> pa.RecordBatch:
        arrays = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    ordered = frame.select(*columns).repartition(*detector.keys)
    return ordered.sortWithinPartitions(*detector.keys, *detector.order).mapInArrow(judged_batches, output)


def _type_of(detector: Detector) -> StructType:
    """Return the output's schema. Only the driver can parse Spark's spelling of types."""
    whole = StructType.fromDDL(", ".join(f"`{name}` {kind}" for name, kind in detector.output))
    assert isinstance(whole, StructType)  # noqa: S101 - several fields are nothing else
    return whole


def _rows_of(batches: Iterator[pa.RecordBatch], columns: tuple[str, ...]) -> Iterator[Row]:
    for batch in batches:
        yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)


def _in_stream(frame: DataFrame, detector: Detector) -> DataFrame:
    output = _type_of(detector)
    grouped = frame.groupBy(*detector.keys)
    if hasattr(GroupedData, "transformWithState"):
        return grouped.transformWithState(_OfRows(detector), output, "Append", "EventTime")
    return grouped.transformWithStateInPandas(_OfFrames(detector), output, "Append", "EventTime")


class _Processor(StatefulProcessor):
    """Runs a step for new rows, and one when the timer of the last step expires."""

    def __init__(self, detector: Detector) -> None:
        self._detector = detector

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("subject", _STATE)

    def _step(self, key: Row, rows: Iterable[Row], watermark_ms: int) -> list[Row]:
        known = self._state.get() if self._state.exists() else None
        kept, timer_ms = (None, None) if known is None else (bytes(known[0]), known[1])
        done = step(self._detector, key, kept, rows, watermark_ms * 1000)
        if done.kept is None or done.due is None:
            self._state.clear()
            next_ms = None
        else:
            next_ms = max(-(-done.due // 1000), watermark_ms + 1)
            self._state.update((done.kept, next_ms))
        if next_ms != timer_ms:
            if timer_ms is not None and timer_ms > watermark_ms:  # expired timers are gone
                self._handle.deleteTimer(timer_ms)
            if next_ms is not None:
                self._handle.registerTimer(next_ms)
        return done.rows

    def handleInputRows(  # noqa: N802  # Spark's name, as those of the arguments
        self,
        key: Row,
        rows: Any,
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Any]:
        return self._shown(self._step(key, self._taken(rows), timerValues.getCurrentWatermarkInMs()))

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Row,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Any]:
        return self._shown(self._step(key, (), timerValues.getCurrentWatermarkInMs()))

    def close(self) -> None:
        """Do nothing: no resource is open."""

    @abstractmethod
    def _taken(self, rows: Any) -> Iterable[Row]:
        """Return what Spark passes as rows of Python values."""

    @abstractmethod
    def _shown(self, rows: list[Row]) -> Iterator[Any]:
        """Return rows as Spark takes them."""


class _OfRows(_Processor):
    """For Spark 4.1 and later."""

    def _taken(self, rows: Any) -> Iterable[Row]:
        columns = self._detector.columns
        return (tuple(row[name] for name in columns) for row in rows)

    def _shown(self, rows: list[Row]) -> Iterator[SparkRow]:
        make = SparkRow(*(name for name, _ in self._detector.output))
        return (make(*row) for row in rows)


class _OfFrames(_Processor):
    """For Spark 4.0."""

    def _taken(self, rows: Any) -> Iterable[Row]:
        """Return None for null, although pandas makes nullable numbers floating-point."""
        for frame in rows:
            columns = (frame[name] for name in self._detector.columns)
            yield from zip(*(each.astype(object).where(each.notna(), None) for each in columns), strict=True)

    def _shown(self, rows: list[Row]) -> Iterator[pd.DataFrame]:
        import pandas as pd  # noqa: PLC0415

        names = [name for name, _ in self._detector.output]
        return iter([pd.DataFrame(rows, columns=names, dtype=object)] if rows else [])
