"""Puts the rows of a subject into the order of time, shows each once to its judge, and keeps the judge's state.

A stream brings rows in any order. Those of a subject wait until the watermark says that none before them can come any
more; then they are judged in their order, and what was judged is written down until more comes. In a batch all is there
and sorted by Spark. A row that comes twice is judged once. So both say the same, whatever came when.

No Spark here: ``stateful.py`` runs this on it.
"""

from __future__ import annotations

import heapq
import types
from collections.abc import Hashable, Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple, Protocol

import msgspec

#: Rows of one subject that wait at most; beyond them the oldest are judged before their time has come.
MAX_WAITING: Final = 65_536

#: A row of the input, or of the output.
Row = tuple[Any, ...]


class Sighting(Protocol):
    """A row as it is judged and written down: a msgspec.Struct."""

    @property
    def t(self) -> int:
        """Its time, in microseconds."""

    @property
    def order(self) -> Any:
        """Its time, and what tells it apart from others of that time."""


class Judge(Protocol):
    """Judges the rows of one subject."""

    #: What it remembers; written down between two batches.
    state: Any

    def feed(self, seen: Any) -> Iterator[Any]:
        """What is noticed with the next row, whose ``order`` is above all before it."""

    def expire(self, now: int) -> Iterator[Any]:
        """What is over at ``now``, before which all was fed; what is too old to matter is forgotten."""

    def due(self) -> int | None:
        """When ``expire`` will have something to do; None if nothing is remembered."""


class Detector(Protocol):
    """What is looked for: which columns it takes and gives, and who judges. It goes to Spark's workers as it is."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Columns that name a subject."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The others that are taken."""

    @property
    def order(self) -> tuple[str, ...]:
        """Of the columns, those that say which row it is."""

    @property
    def output(self) -> tuple[tuple[str, str], ...]:
        """What is given: names and types as Spark spells them."""

    def sighting(self, values: Row) -> Any:
        """What stands in ``columns`` as it is judged."""

    def types(self, key: Row) -> tuple[type[Any], type[Any]]:
        """Of what type the sightings and the state of a subject are; a new state needs no arguments."""

    def judge(self, key: Row, state: Any) -> Judge:
        """Who judges this subject."""

    def told(self, key: Row, notice: Any) -> Row:
        """A row of the output."""


class Step(NamedTuple):
    """What came of a step: rows, what to write down (None: nothing to remember), and when to come again."""

    rows: list[Row]
    kept: bytes | None
    due: int | None


def judged_in_order(detector: Detector, key: Row, rows: Iterable[Row], as_of: int | None = None) -> Iterator[Row]:
    """All that is told of one subject, of all its rows in their order. ``as_of``: what is quiet then is over."""
    judge = detector.judge(key, detector.types(key)[1]())
    last = None
    for row in rows:
        seen = detector.sighting(row)
        if seen.order != last:
            last = seen.order
            for notice in judge.feed(seen):
                yield detector.told(key, notice)
    if as_of is not None:
        for notice in judge.expire(as_of):
            yield detector.told(key, notice)


def step(detector: Detector, key: Row, kept: bytes | None, rows: Iterable[Row], watermark: int) -> Step:
    """Take rows of one subject that came, in any order, and judge those up to the ``watermark`` (microseconds)."""
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
        if seen.t < upto:  # others were judged before their time had come: then nothing goes back behind them
            seen = msgspec.structs.replace(seen, t=upto)
        out.extend(detector.told(key, notice) for notice in judge.feed(seen))

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
    out += (detector.told(key, notice) for notice in judge.expire(max(watermark, upto)))
    due = judge.due()
    if not waiting and due is None:
        return Step(out, None, None)
    left = [seen for _, seen in sorted(waiting, key=lambda each: each[0])]
    moments = [moment for moment in (due, left[0].t if left else None) if moment is not None]
    return Step(out, msgspec.msgpack.encode((left, judge.state, upto)), min(moments))


@cache
def _decoder(sighting: Hashable, state: Hashable) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(types.GenericAlias(tuple, (types.GenericAlias(list, (sighting,)), state, int)))
