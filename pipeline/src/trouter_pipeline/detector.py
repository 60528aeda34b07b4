"""Sorts the rows of a subject by time, shows each once to its judge, and keeps the judge's state.

A stream brings rows in any order. The rows of a subject wait until the watermark shows that no earlier ones can come;
then they are judged in order, and the state is stored until more come. A batch has all rows, sorted by Spark. A
repeated row is judged once. So both give the same result, whatever the order of arrival.

This module does not import Spark: ``stateful.py`` runs it there.
"""

from __future__ import annotations

import heapq
import types
from collections.abc import Hashable, Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple, Protocol

import msgspec

#: Rows of one subject that may wait; beyond that the oldest are judged early.
MAX_WAITING: Final = 65_536

#: A row of the input, or of the output.
Row = tuple[Any, ...]


class Judge(Protocol):
    """Judges the rows of one subject."""

    #: Its memory, stored between two batches.
    state: Any

    def feed(self, seen: Any) -> Iterator[Any]:
        """Yield notices for the next row, whose ``order`` is above all before it."""

    def expire(self, now: int) -> Iterator[Any]:
        """Yield notices that are over at ``now``, before which all was fed; forget what is too old."""

    def due(self) -> int | None:
        """Return when ``expire`` will have work; None if nothing is remembered."""


class Detector(Protocol):
    """A kind of detection: its input and output columns, and its judges. Spark pickles it for the workers."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns that name a subject."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The other input columns."""

    @property
    def order(self) -> tuple[str, ...]:
        """Those of the columns that identify a row."""

    @property
    def output(self) -> tuple[tuple[str, str], ...]:
        """Output columns: names, and types in Spark's spelling."""

    def sighting(self, values: Row) -> Any:
        """Return the values of ``columns`` as a msgspec.Struct.

        It has its time ``t``, in microseconds, and ``order``, which distinguishes it from others of that time, too.
        """

    def types(self, key: Row) -> tuple[type[Any], type[Any]]:
        """Return the types of a subject's sightings and state; a new state needs no arguments."""

    def judge(self, key: Row, state: Any) -> Judge:
        """Return the judge of a subject."""

    def to_row(self, key: Row, notice: Any) -> Row:
        """Return a row of the output."""


class Step(NamedTuple):
    """The result of a step: rows, stored state (None if nothing is remembered), and when to step again."""

    rows: list[Row]
    kept: bytes | None
    due: int | None


def judged_in_order(detector: Detector, key: Row, rows: Iterable[Row], as_of: int | None = None) -> Iterator[Row]:
    """Yield the output for all rows of one subject, which are sorted; with ``as_of``, expire at that time."""
    judge = detector.judge(key, detector.types(key)[1]())
    last = None
    for row in rows:
        seen = detector.sighting(row)
        if seen.order != last:
            last = seen.order
            for notice in judge.feed(seen):
                yield detector.to_row(key, notice)
    if as_of is not None:
        for notice in judge.expire(as_of):
            yield detector.to_row(key, notice)


def step(detector: Detector, key: Row, kept: bytes | None, rows: Iterable[Row], watermark: int) -> Step:
    """Add rows of one subject, in any order, and judge those up to the ``watermark`` (microseconds)."""
    sighting_type, state_type = detector.types(key)
    if kept is None:
        kept_rows, state, upto = [], state_type(), 0
    else:
        kept_rows, state, upto = _decoder(sighting_type, state_type).decode(kept)  # type: ignore[arg-type]  # classes can be hashed
    judge = detector.judge(key, state)
    waiting = [(seen.order, seen) for seen in kept_rows]  # sorted, hence a heap
    known = {order for order, _ in waiting}
    out: list[Row] = []

    def judge_next() -> None:
        seen = heapq.heappop(waiting)[1]
        if seen.t < upto:  # others were judged early, and time may not go back
            seen = msgspec.structs.replace(seen, t=upto)
        out.extend(detector.to_row(key, notice) for notice in judge.feed(seen))

    for row in rows:
        seen = detector.sighting(row)
        if seen.order in known:
            continue
        known.add(seen.order)
        heapq.heappush(waiting, (seen.order, seen))
        if len(waiting) > MAX_WAITING:
            upto = max(upto, waiting[0][1].t)
            judge_next()
    while waiting and waiting[0][1].t <= watermark:
        judge_next()
    out += (detector.to_row(key, notice) for notice in judge.expire(max(watermark, upto)))
    due = judge.due()
    if not waiting and due is None:
        return Step(out, None, None)
    left = [seen for _, seen in sorted(waiting, key=lambda each: each[0])]
    moments = [moment for moment in (due, left[0].t if left else None) if moment is not None]
    return Step(out, msgspec.msgpack.encode((left, judge.state, upto)), min(moments))


@cache
def _decoder(sighting: Hashable, state: Hashable) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(types.GenericAlias(tuple, (types.GenericAlias(list, (sighting,)), state, int)))
