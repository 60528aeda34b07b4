"""The traffic of each hour by tenant, user, address and direction: rows for billing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from trouter_pipeline.metering.counters import COUNTED, DATE, HOUR, HOUR_US, SUBJECTS, among, hour_of, total
from trouter_pipeline.metering.repairs import REPAIRS, Missing, longest_of, prepare
from trouter_pipeline.metering.unproven import Lost, hours_of, unknown

if TYPE_CHECKING:
    from trouter_pipeline.gaps import Boot
    from trouter_pipeline.metering.engines import Engine

_SUBJECTS: Final = ", ".join(SUBJECTS)
_SUMMED: Final = (*COUNTED, "rows", "estimated_msgs")


def meter(
    engine: Engine, missing: Mapping[Boot, Sequence[Missing]], lost: Sequence[Lost], days: Collection[date]
) -> Any:
    """Return the table ``meter`` of some days.

    The engine has records of the kinds ``delivery.interval``, ``link.attached``, ``link.detached`` and
    ``connection.opened`` as ``intervals``, ``attached``, ``detached`` and ``opened``: every day of starts with
    something ``missing``, at least ``days`` of others. ``lost`` has the times of gaps, and of records left out.
    """
    engine.keep("sums", _sums(days))
    parts = ["SELECT * FROM sums"]
    complete = "bool_and(complete)"
    longest_us: Mapping[Boot, int] = {}
    if missing:
        prepare(engine, missing)
        parts.append(REPAIRS)
        longest_us = {**dict.fromkeys(missing, 0), **longest_of(engine)}
    if lost:
        engine.rows("unproven", _unproven(lost, longest_us, days))
        parts.append(_unknown(days))
        complete += " AND hour_us NOT IN (SELECT hour_us FROM unproven)"
    return engine.query(f"""
        SELECT * FROM (
            SELECT {HOUR}, {_SUBJECTS}, {total(_SUMMED)}, {complete} AS complete, {DATE}
            FROM ({" UNION ALL ".join(parts)}) AS parts GROUP BY hour_us, {_SUBJECTS}
        ) AS merged WHERE date IN {among(days)} ORDER BY date, vhost""")


def _sums(days: Collection[date]) -> str:
    """Return SQL for what the records of some days have counted."""
    counted = ", ".join(f"sum(d_{source}) AS {name}" for name, source in COUNTED.items())
    return f"""
        SELECT {hour_of("t0")} AS hour_us, {_SUBJECTS}, {counted}, count(*) AS rows, 0 AS estimated_msgs,
            true AS complete
        FROM intervals WHERE date IN {among(days)} GROUP BY 1, {_SUBJECTS}"""


def _unproven(lost: Iterable[Lost], longest_us: Mapping[Boot, int], days: Collection[date]) -> pa.Table:
    """Return the hours of missing records. One counts from the record before on, which may be in the hour before.

    Of a start of which records were left out, and none is missing, it is not known how long they are: so it is.
    """
    begun = (each._replace(from_us=each.from_us - longest_us.get(each.start, HOUR_US)) for each in lost)
    return hours_of(begun, days)


def _unknown(days: Collection[date]) -> str:
    """Return SQL for rows without counts of unproven hours: of each tenant that any record names, and of none.

    The sums have the tenants of the records of ``days``.
    """
    tenants = f"""
        SELECT vhost FROM sums UNION SELECT vhost FROM intervals WHERE date NOT IN {among(days)}
        UNION SELECT vhost FROM attached UNION SELECT vhost FROM opened"""
    return f"""
        SELECT hour_us, vhost, NULL, NULL, dir, {", ".join("0" for _ in _SUMMED)}, false
        FROM ({unknown(tenants, days)}) AS unknown CROSS JOIN (SELECT 'in' AS dir UNION ALL SELECT 'out') AS ways"""
