"""Repairs for lost records: counts that later records of the same link prove, and incomplete rows.

A record of a link has the counts since the one before (``d_``) and since the attach (``c_``). So ``c_ - d_`` is the
``c_`` of the record before; if that one is missing, the difference to the last known ``c_`` is its count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from trouter_pipeline.gaps import Boot, gaps_of
from trouter_pipeline.metering.counters import COUNTED, SUBJECTS, hour_of

if TYPE_CHECKING:
    from trouter_pipeline.datasets import SegmentFacts

#: Everything after the last number of a finished start is missing.
NO_END: Final = (1 << 63) - 1
_LINK: Final = "router, boot, link"
_SUBJECTS: Final = ", ".join(SUBJECTS)
#: Ranges of a start: where they begin, and where they end.
_LOST: Final = pa.schema(
    {"router": pa.string(), "boot": pa.int64(), "lost": pa.list_(pa.int64()), "upto": pa.list_(pa.int64())}
)


class Missing(NamedTuple):
    """Numbers without records of one start of a router; the last is `NO_END` once the start is over."""

    from_n: int
    to_n: int


def missing_of(segments: Iterable[SegmentFacts]) -> dict[Boot, list[Missing]]:
    """Return the missing ranges of each start; starts that are complete and may go on have none."""
    known = list(segments)
    missing: dict[Boot, list[Missing]] = {}
    for gap in gaps_of(known, {}):
        missing.setdefault((gap.router, gap.boot), []).append(Missing(gap.from_n, gap.to_n))
    ends: dict[Boot, int] = {}
    for facts in known:
        boot = facts.router, facts.boot
        ends[boot] = max(ends.get(boot, -1), facts.last)
    newest: dict[str, int] = {}
    for router, start in ends:
        newest[router] = max(newest.get(router, 0), start)
    for (router, start), last in ends.items():
        if start != newest[router]:
            missing.setdefault((router, start), []).append(Missing(last + 1, NO_END))
    return missing


def lost_rows(missing: Mapping[Boot, Sequence[Missing]]) -> pa.Table:
    """Return rows with the begins, ``lost``, and ends, ``upto``, of each start's missing ranges."""
    rows = [
        {
            "router": router,
            "boot": boot,
            "lost": [each.from_n for each in ranges],
            "upto": [each.to_n for each in ranges],
        }
        for (router, boot), ranges in missing.items()
    ]
    return pa.Table.from_pylist(rows, _LOST)


def repairs(has_between: str) -> str:
    """Return SQL for rows to add: counts that can be proved, and rows that are not complete.

    It selects from ``lost`` and from the records that `traffic.meter` names; ``has_between`` is that of `Engine`.
    """
    return f"""
        SELECT {hour_of("CASE WHEN what = 'detached' THEN coalesce(t0_before, t0) ELSE t0 END")} AS hour_us,
            {_SUBJECTS},
            {", ".join(f"CASE WHEN refilled THEN {name} ELSE 0 END AS {name}" for name in COUNTED)},
            0 AS rows, CASE WHEN refilled THEN msgs ELSE 0 END AS estimated_msgs, NOT unknown AS complete
        FROM ({_judged(has_between)}) AS judged WHERE refilled OR unknown"""


def _counters(prefix: str) -> str:
    """Return SQL for the sum of all counters; none ever falls, so sums agree only if each counter does."""
    return " + ".join(f"{prefix}_{source}" for source in COUNTED.values())


#: Links with all their records, nearly all links, which need no repair.
_WHOLE: Final = f"""
    SELECT {_LINK} FROM intervals JOIN lost USING (router, boot) GROUP BY {_LINK}
    HAVING sum({_counters("d")}) = max({_counters("c")}) AND min({_counters("c")} - ({_counters("d")})) = 0
        AND bool_or(final)"""


def _records() -> str:
    """Return SQL for all records of links: ``what`` they are, sums with (``c_``) and without (``b_``) their counts."""
    counted = [f"c_{source} AS c_{name}, c_{source} - d_{source} AS b_{name}" for name, source in COUNTED.items()]
    nothing = [f"CAST(NULL AS bigint) AS c_{name}, CAST(NULL AS bigint) AS b_{name}" for name in COUNTED]
    what = "CASE WHEN final THEN 'final' ELSE 'interval' END"
    return f"""
        SELECT {_LINK}, n, t0, {_SUBJECTS}, {what} AS what, {", ".join(counted)} FROM intervals
        UNION ALL SELECT {_LINK}, n, t_us, {_SUBJECTS}, 'attached', {", ".join(nothing)} FROM attached
        UNION ALL SELECT {_LINK}, n, t_us, {_SUBJECTS}, 'detached', {", ".join(nothing)} FROM detached"""


def _steps(has_between: str) -> str:
    """Return SQL for each record beside the one before it of the same link, and the gaps around it.

    Each counter column has the count that is missing between the two.
    """
    grown = [f"b_{name} - coalesce(lag(c_{name}) OVER of_link, 0) AS {name}" for name in COUNTED]
    beside = f"""
        SELECT n, t0, {_SUBJECTS}, what, lost, upto, {", ".join(grown)},
            lag(n) OVER of_link AS n_before, lag(what) OVER of_link AS what_before, lag(t0) OVER of_link AS t0_before,
            lead(n) OVER of_link IS NULL AS is_last
        FROM ({_records()}) AS events JOIN lost USING (router, boot)
        WHERE NOT EXISTS (
            SELECT 1 FROM ({_WHOLE}) AS whole
            WHERE whole.router = events.router AND whole.boot = events.boot AND whole.link = events.link
        )
        WINDOW of_link AS (PARTITION BY {_LINK} ORDER BY n)"""
    return f"""
        SELECT *,
            {has_between.format(list="lost", low="coalesce(n_before, -1)", high="n")} AS gap_before,
            {has_between.format(list="lost", low="n", high=NO_END)} AS gap_after,
            array_contains(upto, n - 1) AS gap_touches
        FROM ({beside}) AS beside"""


def _judged(has_between: str) -> str:
    """Return SQL for each step, and whether its missing counts are known (``refilled``) or ``unknown``.

    A link that is older than the recording has counts in its first record, with nothing missing before it: it
    ``begins``. The record of a link's end directly follows that of its last counts, if it had any: ``last_lost``.
    """
    moved = " OR ".join(f"{name} <> 0" for name in COUNTED)
    fell = " OR ".join(f"{name} < 0" for name in COUNTED)
    return f"""
        SELECT *,
            coalesce(recorded AND moved AND gap_before AND NOT fell, false) AS refilled,
            coalesce(recorded AND (fell OR (moved AND NOT begins AND NOT gap_before)), false) OR coalesce(
                is_last AND (
                    (what IN ('interval', 'attached') AND gap_after) OR (what = 'detached' AND last_lost)
                ),
                false
            ) AS unknown
        FROM (
            SELECT *,
                what IN ('interval', 'final') AS recorded, ({moved}) AS moved, ({fell}) AS fell,
                what_before IS NULL AND NOT gap_before AS begins,
                coalesce(
                    what_before = 'interval' OR (coalesce(what_before, 'attached') = 'attached' AND gap_touches), false
                ) AS last_lost
            FROM ({_steps(has_between)}) AS steps
        ) AS named"""
