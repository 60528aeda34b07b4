"""The traffic of each hour by tenant, user, address and direction: rows for billing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from trouter_pipeline.metering.counters import COUNTED, DATE, HOUR, SUBJECTS, among, hour_of, total
from trouter_pipeline.metering.repairs import REPAIRS, Missing, prepare

if TYPE_CHECKING:
    from trouter_pipeline.gaps import Boot
    from trouter_pipeline.metering.engines import Engine

_SUBJECTS: Final = ", ".join(SUBJECTS)
_SUMMED: Final = (*COUNTED, "rows", "estimated_msgs")


def meter(engine: Engine, missing: Mapping[Boot, Sequence[Missing]], days: Collection[date]) -> Any:
    """Return the table ``meter`` of some days.

    The engine has records of the kinds ``delivery.interval``, ``link.attached`` and ``link.detached`` as ``intervals``,
    ``attached`` and ``detached``: every day of starts with something ``missing``, at least ``days`` of others.
    """
    if missing:
        prepare(engine, missing)
    counted = ", ".join(f"sum(d_{source}) AS {name}" for name, source in COUNTED.items())
    sums = f"""
        SELECT {hour_of("t0")} AS hour_us, {_SUBJECTS}, {counted}, count(*) AS rows, 0 AS estimated_msgs,
            true AS complete
        FROM intervals WHERE date IN {among(days)} GROUP BY 1, {_SUBJECTS}"""
    if missing:
        sums += f" UNION ALL {REPAIRS}"
    return engine.query(f"""
        SELECT * FROM (
            SELECT {HOUR}, {_SUBJECTS}, {total(_SUMMED)}, bool_and(complete) AS complete, {DATE}
            FROM ({sums}) AS parts GROUP BY hour_us, {_SUBJECTS}
        ) AS merged WHERE date IN {among(days)} ORDER BY date, vhost""")
