"""Repairs for lost records: counts that later records of the same link prove, and incomplete rows.

A record of a link has the counts since the one before (``d_``) and since the attach (``c_``). So ``c_ - d_`` is the
``c_`` of the record before; if that one is missing, the difference to the last known ``c_`` is its count.

The missing numbers of a start of a router cut its records into stretches, in each of which every record is there. A
link's records in one stretch are therefore a chain, of which only both ends matter: they are a run. One pass over all
records sums each link by hour and stretch; everything else works on these sums, or on the records of the few links
whose chains contradict themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from trouter_pipeline.gaps import Boot, gaps_of
from trouter_pipeline.metering.counters import COUNTED, SUBJECTS, hour_of

if TYPE_CHECKING:
    from trouter_pipeline.datasets import SegmentFacts
    from trouter_pipeline.metering.engines import Engine

#: Everything after the last number of a finished start is missing.
NO_END: Final = (1 << 63) - 1
_LINK: Final = "router, boot, link"
#: Its square fits into 64 bits a billion times.
_PRIME: Final = 30_011
_SUBJECTS: Final = ", ".join(SUBJECTS)
#: Stretches of a start: number, first and last record.
_STRETCHES: Final = pa.schema(
    {"router": pa.string(), "boot": pa.int64(), "stretch": pa.int64(), "first_n": pa.int64(), "last_n": pa.int64()}
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


def stretches_of(missing: Mapping[Boot, Sequence[Missing]]) -> pa.Table:
    """Return the stretches between the missing ranges of each start, numbered by the ranges before them."""
    rows = []
    for (router, boot), ranges in missing.items():
        first = 0
        for number, lost in enumerate([*sorted(ranges), Missing(NO_END, NO_END)]):
            if first < lost.from_n:
                last = lost.from_n if lost.from_n == NO_END else lost.from_n - 1
                row = {"router": router, "boot": boot, "stretch": number, "first_n": first, "last_n": last}
                rows.append(row)
            first = min(lost.to_n, NO_END - 1) + 1
    return pa.Table.from_pylist(rows, _STRETCHES)


def prepare(engine: Engine, missing: Mapping[Boot, Sequence[Missing]]) -> None:
    """Keep ``by_link``, the sums of every link by hour, and ``judged``, what `REPAIRS` selects from.

    The engine has the records as `traffic.meter` names them.
    """
    engine.rows("stretches", stretches_of(missing))
    with engine.fewer(engine.keep("by_link", _by_link())):
        engine.keep("runs", _runs())
        engine.keep("doubtful", _doubtful())
        some_odd = engine.keep("odd", _odd()) > 0
        engine.keep("judged", _judged(some_odd))


#: SQL for rows to add: counts that can be proved, and rows that are not complete.
REPAIRS: Final = f"""
    SELECT {hour_of("t0")} AS hour_us, {_SUBJECTS},
        {", ".join(f"CASE WHEN refilled THEN {name} ELSE 0 END AS {name}" for name in COUNTED)},
        0 AS rows, CASE WHEN refilled THEN msgs ELSE 0 END AS estimated_msgs, NOT contradicted AS complete
    FROM judged WHERE refilled OR contradicted
    UNION ALL
    SELECT {hour_of("CASE WHEN what = 'detached' THEN coalesce(t_before, t_last) ELSE t_last END")}, {_SUBJECTS},
        {", ".join("0" for _ in COUNTED)}, 0, 0, false
    FROM judged WHERE end_unknown"""


def _within(records: str) -> str:
    """Return SQL for the join of records with their stretch; others of the start have none."""
    return f"""stretches ON stretches.router = {records}.router AND stretches.boot = {records}.boot
        AND {records}.n BETWEEN stretches.first_n AND stretches.last_n"""


def _by_link() -> str:
    """Return SQL for each link's sums by hour and stretch, in one pass over all records.

    A start with nothing missing has no links here, only sums. ``b_`` is the count before the first record, ``c_`` that
    with the last; in a chain, ``mixed`` is the difference of the two, because all between cancel each other.
    """
    counts = ", ".join(f"sum(d_{source}) AS {name}" for name, source in COUNTED.items())
    ends = ", ".join(f"min(c_{source} - d_{source}) AS b_{name}" for name, source in COUNTED.items())
    ends += "".join(f", max(c_{source}) AS c_{name}" for name, source in COUNTED.items())
    subjects = ", ".join(f"intervals.{name}" for name in SUBJECTS)
    return f"""
        SELECT intervals.router, intervals.boot, CASE WHEN stretch IS NOT NULL THEN link END AS link, stretch,
            {hour_of("t0")} AS hour_us, date, {subjects}, {counts}, count(*) AS rows, {ends}, min(n) AS n,
            max(n) AS n_last, min_by(t0, n) AS t0, max_by(t0, n) AS t_last, bool_or(final) AS final,
            sum({_mixed(_counters("c_{}"))} - {_mixed(_counters("c_{0} - d_{0}"))}) AS mixed
        FROM intervals LEFT JOIN {_within("intervals")}
        GROUP BY 1, 2, 3, 4, 5, 6, {subjects}"""


def _runs() -> str:
    """Return SQL for the runs: a link's records of one stretch as if they were one."""
    counts = ", ".join(
        f"sum({name}) AS {name}, min(b_{name}) AS b_{name}, max(c_{name}) AS c_{name}" for name in COUNTED
    )
    return f"""
        SELECT {_LINK}, stretch, {_SUBJECTS}, {counts}, min(n) AS n, max(n_last) AS n_last, min_by(t0, n) AS t0,
            max_by(t_last, n_last) AS t_last, bool_or(final) AS final, sum(mixed) AS mixed
        FROM by_link WHERE link IS NOT NULL GROUP BY {_LINK}, stretch, {_SUBJECTS}"""


def _counters(of: str) -> str:
    """Return SQL for the sum of all counters of a record; ``of`` is one, with `{}` for its name."""
    return " + ".join(f"({of.format(source)})" for source in COUNTED.values())


def _sum_of(prefix: str) -> str:
    """Return SQL for the sum of all counters; none ever falls, so sums agree only if each counter does."""
    return " + ".join(f"{prefix}{name}" for name in COUNTED)


def _mixed(number: str) -> str:
    """Return SQL for a number that is another for nearly every other number, and whose sums stay small."""
    return f"(({number}) % {_PRIME}) * (({number}) % {_PRIME})"


def _doubtful() -> str:
    """Return SQL for the links that may lack records: their counts do not lead from nothing to a last record."""
    return f"""
        SELECT {_LINK} FROM (
            SELECT {_LINK}, {_sum_of("")} AS counted, {_sum_of("b_")} AS begun, {_sum_of("c_")} AS reached, final
            FROM runs
            UNION ALL SELECT {_LINK}, NULL, NULL, NULL, NULL FROM attached
            UNION ALL SELECT {_LINK}, NULL, NULL, NULL, NULL FROM detached
        ) AS links GROUP BY {_LINK}
        HAVING NOT coalesce(sum(counted) = max(reached) AND min(begun) = 0 AND bool_or(final), false)"""


def _odd() -> str:
    """Return SQL for the links with a run that is no chain: its counts do not lead from its first record to its last.

    Nor is it one if the link has counts before its attach, changes its subject or goes on after its detach.
    """
    same_link = " AND ".join(f"other.{name} = runs.{name}" for name in _LINK.split(", "))
    run = ", ".join(f"runs.{name}" for name in _LINK.split(", "))
    return f"""
        SELECT DISTINCT {_LINK} FROM (
            SELECT {_LINK} FROM runs WHERE {_sum_of("")} <> {_sum_of("c_")} - ({_sum_of("b_")})
                OR mixed <> {_mixed(_sum_of("c_"))} - {_mixed(_sum_of("b_"))}
            UNION ALL SELECT {_LINK} FROM runs GROUP BY {_LINK}, stretch HAVING count(*) > 1
            UNION ALL SELECT {run} FROM runs JOIN attached AS other ON {same_link}
                JOIN stretches ON stretches.router = runs.router AND stretches.boot = runs.boot
                    AND stretches.stretch = runs.stretch
                WHERE other.n BETWEEN stretches.first_n AND runs.n_last AND (other.n > runs.n OR {_sum_of("b_")} <> 0)
            UNION ALL SELECT {run} FROM runs JOIN detached AS other ON {same_link} WHERE other.n < runs.n_last
        ) AS contradictions JOIN doubtful USING ({_LINK})"""


def _events(some_odd: bool) -> str:
    """Return SQL for what is known of links, in the order of ``n``: runs, records of odd links, attaches, detaches.

    ``what`` is the last record of each; ``b_`` and ``c_`` are the counts before and after it, null of no record. No
    record is read again unless there are ``some_odd`` links.
    """
    counted = ", ".join(f"b_{name}, c_{name}" for name in COUNTED)
    of_record = ", ".join(
        f"c_{source} - d_{source} AS b_{name}, c_{source} AS c_{name}" for name, source in COUNTED.items()
    )
    nothing = ", ".join(f"CAST(NULL AS bigint) AS b_{name}, CAST(NULL AS bigint) AS c_{name}" for name in COUNTED)
    what = "CASE WHEN final THEN 'final' ELSE 'interval' END AS what"
    runs = f"""
        SELECT {_LINK}, stretch, n, n_last, t0, t_last, {_SUBJECTS}, {what}, {counted}
        FROM runs JOIN doubtful USING ({_LINK})
        WHERE NOT EXISTS (
            SELECT 1 FROM odd WHERE odd.router = runs.router AND odd.boot = runs.boot AND odd.link = runs.link
        )"""
    records = f"""
        SELECT {_LINK}, n, n AS n_last, t0, t0 AS t_last, {_SUBJECTS}, {what}, {of_record}
            FROM intervals JOIN odd USING ({_LINK})
        UNION ALL """
    single = f"""{records if some_odd else ""}
        SELECT {_LINK}, n, n AS n_last, t_us AS t0, t_us AS t_last, {_SUBJECTS}, 'attached' AS what, {nothing}
            FROM attached JOIN doubtful USING ({_LINK})
        UNION ALL SELECT {_LINK}, n, n, t_us, t_us, {_SUBJECTS}, 'detached', {nothing}
            FROM detached JOIN doubtful USING ({_LINK})"""
    names = f"n, n_last, t0, t_last, {_SUBJECTS}, what, {counted}"
    return f"""
        {runs} UNION ALL
        SELECT single.router, single.boot, single.link, stretch, {names}
        FROM ({single}) AS single JOIN {_within("single")}"""


def _steps(some_odd: bool) -> str:
    """Return SQL for each event beside the one before it of the same link, and the gaps around it.

    Each counter column has the count that is missing between the two.
    """
    grown = [f"b_{name} - coalesce(lag(c_{name}) OVER of_link, 0) AS {name}" for name in COUNTED]
    return f"""
        SELECT router, boot, stretch, n, t0, t_last, {_SUBJECTS}, what, {", ".join(grown)},
            lag(what) OVER of_link AS what_before, lag(t_last) OVER of_link AS t_before,
            stretch > coalesce(lag(stretch) OVER of_link, 0) AS gap_before, lead(n) OVER of_link IS NULL AS is_last
        FROM ({_events(some_odd)}) AS events
        WINDOW of_link AS (PARTITION BY {_LINK} ORDER BY n)"""


def _judged(some_odd: bool) -> str:
    """Return SQL for the steps with missing counts that are known (``refilled``) or with none that can be.

    A link that is older than the recording has counts in its first record, with nothing missing before it: it
    ``begins``. Counts of others that nothing explains are ``contradicted``. What came after a link's last record is
    unknown (``end_unknown``) if records are missing after it, and before its detach: the record of its last counts
    directly precedes that, if it had any.
    """
    moved = " OR ".join(f"{name} <> 0" for name in COUNTED)
    fell = " OR ".join(f"{name} < 0" for name in COUNTED)
    names = ", ".join(COUNTED)
    return f"""
        SELECT t0, t_last, t_before, {_SUBJECTS}, what, {names}, refilled, contradicted, end_unknown
        FROM (
            SELECT *,
                coalesce(recorded AND moved AND gap_before AND NOT fell, false) AS refilled,
                coalesce(
                    recorded AND (fell OR (moved AND NOT gap_before AND what_before IS NOT NULL)), false
                ) AS contradicted,
                coalesce(
                    is_last AND CASE
                        WHEN what = 'detached' THEN what_before = 'interval'
                            OR (coalesce(what_before, 'attached') = 'attached' AND n = first_n AND stretch > 0)
                        WHEN what = 'final' THEN false
                        ELSE last_n < {NO_END}
                    END,
                    false
                ) AS end_unknown
            FROM (
                SELECT steps.*, first_n, last_n,
                    what IN ('interval', 'final') AS recorded, ({moved}) AS moved, ({fell}) AS fell
                FROM ({_steps(some_odd)}) AS steps
                JOIN stretches ON stretches.router = steps.router AND stretches.boot = steps.boot
                    AND stretches.stretch = steps.stretch
            ) AS named
        ) AS judged WHERE refilled OR contradicted OR end_unknown"""
