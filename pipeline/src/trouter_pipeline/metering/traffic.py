"""The traffic of each hour by tenant, user, address and direction: rows for billing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from trouter_pipeline.metering.counters import COUNTED, DATE, HOUR, SUBJECTS, among, hour_of, total
from trouter_pipeline.metering.repairs import REPAIRS, Missing, prepare
from trouter_pipeline.metering.unproven import Lost, fillers, hours, rows_of

if TYPE_CHECKING:
    from trouter_pipeline.gaps import Boot
    from trouter_pipeline.metering.engines import Engine

_SUBJECTS: Final = ", ".join(SUBJECTS)
_SUMMED: Final = (*COUNTED, "rows", "estimated_msgs")


#: SQL for the times of missing records. A record counts from the one before on, which may be in the hour before.
_TIMES: Final = """
    SELECT from_us - coalesce(longest_us, 0) AS from_us, to_us
    FROM lost LEFT JOIN (
        SELECT router, boot, max(t1 - t0) AS longest_us FROM intervals GROUP BY router, boot
    ) AS lengths ON lost.router = lengths.router AND lost.boot = lengths.boot"""
#: SQL for the tenants of the records.
_TENANTS: Final = " UNION ".join(f"SELECT vhost FROM {name}" for name in ("intervals", "attached", "opened"))


def meter(
    engine: Engine, missing: Mapping[Boot, Sequence[Missing]], lost: Sequence[Lost], days: Collection[date]
) -> Any:
    """Return the table ``meter`` of some days.

    The engine has records of the kinds ``delivery.interval``, ``link.attached``, ``link.detached`` and
    ``connection.opened`` as ``intervals``, ``attached``, ``detached`` and ``opened``: every day of starts with
    something ``missing``, at least ``days`` of others. ``lost`` has the times of the gaps among them.
    """
    if missing:
        prepare(engine, missing)
    if lost:
        engine.rows("lost", rows_of(lost))
        engine.keep("unproven", hours(_TIMES))
    counted = ", ".join(f"sum(d_{source}) AS {name}" for name, source in COUNTED.items())
    sums = f"""
        SELECT {hour_of("t0")} AS hour_us, {_SUBJECTS}, {counted}, count(*) AS rows, 0 AS estimated_msgs,
            true AS complete
        FROM intervals WHERE date IN {among(days)} GROUP BY 1, {_SUBJECTS}"""
    if missing:
        sums += f" UNION ALL {REPAIRS}"
    complete = "bool_and(complete)"
    if lost:
        for way in ("in", "out"):
            nothing = dict.fromkeys(SUBJECTS[1:-1], "CAST(NULL AS string)") | {"dir": f"'{way}'"}
            sums += (
                f" UNION ALL {fillers(nothing | dict.fromkeys(_SUMMED, '0') | {'complete': 'false'}, _TENANTS, days)}"
            )
        complete += " AND hour_us NOT IN (SELECT hour_us FROM unproven)"
    return engine.query(f"""
        SELECT * FROM (
            SELECT {HOUR}, {_SUBJECTS}, {total(_SUMMED)}, {complete} AS complete, {DATE}
            FROM ({sums}) AS parts GROUP BY hour_us, {_SUBJECTS}
        ) AS merged WHERE date IN {among(days)} ORDER BY date, vhost""")
