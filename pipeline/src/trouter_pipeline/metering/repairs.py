"""Repairs for lost records: counts that later records of the same link prove, and incomplete rows.

A record of a link has the counts since the one before (``d_``) and since the attach (``c_``). So ``c_ - d_`` is the
``c_`` of the record before; if that one is missing, the difference to the last known ``c_`` is its count.

The missing numbers of a start of a router cut its records into stretches, in each of which every record is there. A
link's records in one stretch are therefore a chain, of which only both ends matter: they are a run. One pass over all
records proves each run by a few numbers; these say which links may lack records and between which two records. Only
those, and all records of the few links whose chains contradict themselves, are read again with all their counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from trouter_pipeline.gaps import Boot, gaps_of
from trouter_pipeline.metering.counters import COUNTED, SUBJECTS, hour_of, summed_after

if TYPE_CHECKING:
    from trouter_pipeline.datasets import SegmentFacts
    from trouter_pipeline.metering.engines import Engine

#: Everything after the last number of a finished start is missing.
NO_END: Final = (1 << 63) - 1
_LINK: Final = "router, boot, link"
_RECORD: Final = "router, boot, n"
#: Its square fits into 64 bits a billion times.
_PRIME: Final = 30_011
#: Records whose numbers are near each other are found together: one test for so many leaves few to be looked up.
_NEAR: Final = 4096
#: Most ranges of numbers by which what is read is chosen.
_PARTS: Final = 64
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
    """Return the missing ranges of each start; starts that are complete and may go on have none.

    Segments that were left out are no part of the start, because others have their numbers.
    """
    known = [facts for facts in segments if not facts.left_out]
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
    """Keep ``suspects``, the steps between two events of a link that lack something, and ``found``, their records.

    `REPAIRS` selects from both. The engine has the records as `traffic.meter` names them.
    """
    engine.rows("stretches", stretches_of(missing))
    with engine.fewer(engine.keep("runs", _RUNS)):
        engine.keep("doubtful", _DOUBTFUL)
        some_odd = engine.keep("odd", _ODD) > 0
        engine.keep("suspects", _suspects(some_odd))
        engine.keep("wanted", _WANTED)
        engine.keep("found", _found(engine.few(_RANGES)))


def longest_of(engine: Engine) -> dict[Boot, int]:
    """Return the microseconds of the longest interval of each prepared start."""
    rows = engine.few("SELECT router, boot, max(longest_us) FROM runs GROUP BY router, boot")
    return {(router, boot): longest_us for router, boot, longest_us in rows}


def _proof(of: str) -> str:
    """Return SQL for one number of all counters of a record; ``of`` is one, with `{}` for its name.

    No counter ever falls, so proofs agree only if each counter does; each has a weight, so that two wrong ones differ.
    """
    return " + ".join(f"{weight} * ({of.format(source)})" for weight, source in enumerate(COUNTED.values(), 1))


def _mixed(number: str) -> str:
    """Return SQL for a number that is another for nearly every other number, and whose sums stay small."""
    return f"(({number}) % {_PRIME}) * (({number}) % {_PRIME})"


def _same(names: str, one: str, other: str) -> str:
    """Return SQL for two tables that have the same in these columns."""
    return " AND ".join(f"{one}.{name} = {other}.{name}" for name in names.split(", "))


def _within(records: str) -> str:
    """Return SQL for the join of records with their stretch; others of the start have none."""
    return f"""stretches ON {_same("router, boot", "stretches", records)}
        AND {records}.n BETWEEN stretches.first_n AND stretches.last_n"""


_BEGUN: Final = _proof("c_{0} - d_{0}")
_REACHED: Final = _proof("c_{}")
_WHAT: Final = "CASE WHEN final THEN 'final' ELSE 'interval' END AS what"
_UNCOUNTED: Final = "CAST(NULL AS bigint) AS begun, CAST(NULL AS bigint) AS reached"
_UNTOLD: Final = "CAST(NULL AS bigint) AS t_us, " + ", ".join(f"CAST(NULL AS string) AS {name}" for name in SUBJECTS)

#: SQL for the runs, in one pass over all records: first and last record of a link in one stretch, and its proof.
#:
#: ``begun`` is the proof before the first record, ``reached`` that with the last, and ``grown`` what all records say
#: they added. In a chain, ``mixed`` is the difference of the two ends, because all between cancel each other.
_RUNS: Final = f"""
    SELECT router, boot, link, stretch, min(n) AS n, max(n) AS n_last, bool_or(final) AS final, sum(added) AS grown,
        min(reached - added) AS begun, max(reached) AS reached,
        sum({_mixed("reached")} - {_mixed("reached - added")}) AS mixed, max(length_us) AS longest_us
    FROM (
        SELECT intervals.router, intervals.boot, link, stretch, n, final, {_proof("d_{}")} AS added,
            {_REACHED} AS reached, t1 - t0 AS length_us
        FROM intervals JOIN {_within("intervals")}
    ) AS proofs GROUP BY {_LINK}, stretch"""

#: SQL for the links that may lack records: their counts do not lead from nothing to a last record.
_DOUBTFUL: Final = f"""
    SELECT {_LINK} FROM (
        SELECT {_LINK}, grown, begun, reached, final FROM runs
        UNION ALL SELECT {_LINK}, NULL, NULL, NULL, NULL FROM attached
        UNION ALL SELECT {_LINK}, NULL, NULL, NULL, NULL FROM detached
    ) AS links GROUP BY {_LINK}
    HAVING NOT coalesce(sum(grown) = max(reached) AND min(begun) = 0 AND bool_or(final), false)"""

#: SQL for the links with a run that is no chain: its counts do not lead from its first record to its last.
#:
#: Nor is it one if the link has counts before its attach, or goes on after its detach.
_ODD: Final = f"""
    SELECT DISTINCT {_LINK} FROM (
        SELECT {_LINK} FROM runs
            WHERE grown <> reached - begun OR mixed <> {_mixed("reached")} - {_mixed("begun")}
        UNION ALL SELECT runs.router, runs.boot, runs.link FROM runs JOIN attached ON {_same(_LINK, "attached", "runs")}
            JOIN stretches ON {_same("router, boot, stretch", "stretches", "runs")}
            WHERE attached.n BETWEEN first_n AND n_last AND (attached.n > runs.n OR begun <> 0)
        UNION ALL SELECT runs.router, runs.boot, runs.link FROM runs JOIN detached ON {_same(_LINK, "detached", "runs")}
            WHERE detached.n < n_last
    ) AS contradictions JOIN doubtful USING ({_LINK})"""


def _events(some_odd: bool) -> str:
    """Return SQL for what is known of links, in the order of ``n``: runs, records of odd links, attaches, detaches.

    ``what`` is the last record of each; attaches and detaches have their time and subjects. No record is read again
    unless there are ``some_odd`` links.
    """
    runs = f"""
        SELECT {_LINK}, stretch, n, n_last, {_WHAT}, begun, reached, {_UNTOLD}
        FROM runs JOIN doubtful USING ({_LINK})
        WHERE NOT EXISTS (SELECT 1 FROM odd WHERE {_same(_LINK, "odd", "runs")})"""
    single = f"""
        SELECT {_LINK}, n, n AS n_last, 'attached' AS what, {_UNCOUNTED}, t_us, {_SUBJECTS}
            FROM attached JOIN doubtful USING ({_LINK})
            WHERE NOT EXISTS (SELECT 1 FROM detached AS several WHERE {summed_after("attached")})
        UNION ALL SELECT {_LINK}, n, n, 'detached', {_UNCOUNTED}, t_us, {_SUBJECTS}
            FROM detached JOIN doubtful USING ({_LINK})"""
    if some_odd:
        single += f"""
            UNION ALL SELECT {_LINK}, n, n, {_WHAT}, {_BEGUN}, {_REACHED}, {_UNTOLD}
            FROM intervals JOIN odd USING ({_LINK})"""
    return f"""
        {runs} UNION ALL
        SELECT single.router, single.boot, single.link, stretch, n, n_last, what, begun, reached, t_us, {_SUBJECTS}
        FROM ({single}) AS single JOIN {_within("single")}"""


def _suspects(some_odd: bool) -> str:
    """Return SQL for the events before which counts are missing (``moved``) or whose link has no known end.

    What came after a link's last record is unknown (``end_unknown``) if records are missing after it, and before its
    detach: the record of its last counts directly precedes that, if it had any. ``n_told`` is the record that tells
    when and whose this was.
    """
    return f"""
        SELECT * FROM (
            SELECT steps.router, steps.boot, n, n_before, what_before, gap_before, t_us, t_before, {_SUBJECTS},
                CASE what WHEN 'interval' THEN n_last WHEN 'detached' THEN n_before END AS n_told,
                what IN ('interval', 'final') AND begun <> reached_before AS moved,
                is_last AND CASE
                    WHEN what = 'detached' THEN what_before = 'interval'
                        OR (what_before IN ('', 'attached') AND n = first_n AND steps.stretch > 0)
                    WHEN what = 'final' THEN false
                    ELSE last_n < {NO_END}
                END AS end_unknown
            FROM (
                SELECT *, lag(n_last) OVER of_link AS n_before, coalesce(lag(what) OVER of_link, '') AS what_before,
                    coalesce(lag(reached) OVER of_link, 0) AS reached_before,
                    CASE what WHEN 'detached' THEN lag(t_us) OVER of_link END AS t_before,
                    stretch > coalesce(lag(stretch) OVER of_link, 0) AS gap_before,
                    lead(n) OVER of_link IS NULL AS is_last
                FROM ({_events(some_odd)}) AS events
                WINDOW of_link AS (PARTITION BY {_LINK} ORDER BY n)
            ) AS steps JOIN stretches ON {_same("router, boot, stretch", "stretches", "steps")}
        ) AS judged WHERE moved OR end_unknown"""


#: SQL for the records of the suspects: those on both sides of missing counts, and those that tell of an unknown end.
_WANTED: Final = f"""
    SELECT {_RECORD} FROM suspects WHERE moved
    UNION SELECT router, boot, n_before FROM suspects WHERE moved AND what_before IN ('interval', 'final')
    UNION SELECT router, boot, n_told FROM suspects WHERE end_unknown AND n_told IS NOT NULL"""

#: SQL for the first and last wanted number in each of so many equal parts of all numbers.
_RANGES: Final = f"""
    SELECT min(n), max(n) FROM (
        SELECT n, floor(n / ((last_n + 1) / {_PARTS})) AS part
        FROM wanted CROSS JOIN (SELECT max(n) AS last_n FROM wanted) AS whole
    ) AS divided GROUP BY part"""


def _found(ranges: Iterable[tuple[int, int]]) -> str:
    """Return SQL for the wanted records, with their counts before (``b_``) and after (``c_``) each.

    Pieces of files without a number in these ranges are not read.
    """
    within = " OR ".join(f"intervals.n BETWEEN {first} AND {last}" for first, last in ranges) or "false"
    counts = ", ".join(
        f"c_{source} - d_{source} AS b_{name}, c_{source} AS c_{name}" for name, source in COUNTED.items()
    )
    return f"""
        SELECT /*+ BROADCAST(near) */ {_RECORD}, t0, {_SUBJECTS}, {counts}
        FROM intervals SEMI JOIN (SELECT DISTINCT router, boot, n - n % {_NEAR} AS about FROM wanted) AS near
            ON {_same("router, boot", "near", "intervals")} AND about = intervals.n - intervals.n % {_NEAR}
        JOIN wanted USING ({_RECORD})
        WHERE {within}"""


_UNLESS: Final = "CASE WHEN contradicted THEN 0 ELSE {} END"
#: SQL for rows to add: counts that can be proved, and rows that are not complete.
#:
#: A link that is older than the recording has counts in its first record, with nothing missing before it: it begins.
#: Counts of others that nothing explains are ``contradicted``.
REPAIRS: Final = f"""
    SELECT hour_us, {_SUBJECTS}, {", ".join(f"{_UNLESS.format(name)} AS {name}" for name in COUNTED)},
        0 AS rows, {_UNLESS.format("msgs")} AS estimated_msgs, NOT contradicted AS complete
    FROM (
        SELECT *, {" OR ".join(f"{name} < 0" for name in COUNTED)}
            OR (NOT gap_before AND what_before <> '') AS contradicted
        FROM (
            SELECT gap_before, what_before, {hour_of("after.t0")} AS hour_us,
                {", ".join(f"after.{name}" for name in SUBJECTS)},
                {", ".join(f"after.b_{name} - coalesce(before.c_{name}, 0) AS {name}" for name in COUNTED)}
            FROM suspects JOIN found AS after ON {_same(_RECORD, "after", "suspects")}
                LEFT JOIN found AS before ON {_same("router, boot", "before", "suspects")} AND before.n = n_before
            WHERE moved
        ) AS grown
    ) AS judged WHERE contradicted OR gap_before
    UNION ALL
    SELECT {hour_of("coalesce(told.t0, t_before, t_us)")},
        {", ".join(f"CASE WHEN t_us IS NULL THEN told.{name} ELSE suspects.{name} END" for name in SUBJECTS)},
        {", ".join("0" for _ in COUNTED)}, 0, 0, false
    FROM suspects LEFT JOIN found AS told ON {_same("router, boot", "told", "suspects")} AND told.n = n_told
    WHERE end_unknown"""
