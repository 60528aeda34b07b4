"""Numbers of concurrent connections and links, and durations of connections.

A row is not complete in an hour of which records are missing, and while a connection counts whose end may be among
them: it counts until its router's last record.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from trouter_pipeline.metering.counters import DATE, HOUR, HOUR_US, among, hour_of, summed_after
from trouter_pipeline.metering.unproven import Lost, hours_of, rows_of, unknown

if TYPE_CHECKING:
    from trouter_pipeline.gaps import Boot
    from trouter_pipeline.metering.engines import Engine

#: The columns that identify a row.
_KEY: Final = "hour_us, vhost, user"
_NUMBERS: Final = ("us", "peak_connections", "peak_links", "opened", "failed")
_ENDS: Final = pa.schema({"router": pa.string(), "boot": pa.int64(), "until_us": pa.int64()})


#: SQL for the tenants of the records.
_TENANTS: Final = " UNION ".join(f"SELECT vhost FROM {name}" for name in ("opened", "closed", "attached"))


def connections(engine: Engine, ends: Mapping[Boot, int], lost: Sequence[Lost], days: Collection[date]) -> Any:
    """Return the table ``meter_conn`` of some days.

    The engine has every day of ``opened``, ``closed``, ``attached`` and ``detached``, the records of connections and
    links. ``ends`` has the time of the last record of each start of a router, in microseconds; a connection or link
    without an end lasts until then. ``lost`` has the times in which connections may be unknown.
    """
    rows = [{"router": router, "boot": boot, "until_us": until} for (router, boot), until in ends.items()]
    engine.rows("ends", pa.Table.from_pylist(rows, _ENDS))
    engine.rows("lost", rows_of(lost))
    engine.rows("unproven", hours_of(lost, days))
    parts = (
        f"SELECT {_KEY}, {_only('us', 'sum(to_us - from_us)')}, true AS complete FROM conns GROUP BY {_KEY}",
        _peaks("conns", "peak_connections"),
        _peaks("links", "peak_links"),
        _counted("opened", "opened"),
        _counted("(SELECT * FROM closed WHERE opened_at = 0) AS refused", "failed"),
        f"SELECT {_KEY}, {_only('us', '0')}, false AS complete FROM endless GROUP BY {_KEY}",
        f"SELECT hour_us, vhost, NULL, {_only('us', '0')}, false FROM ({unknown(_TENANTS, days)}) AS unknown",
    )
    numbers = [f"CAST(coalesce(max({name}), 0) AS bigint) AS {name}" for name in _NUMBERS]
    return engine.query(f"""
        WITH conns AS ({_by_hour(_spans("opened", "closed", "conn", "opened_at"), days)}),
            links AS ({_by_hour(_LINKS, days)}),
            endless AS ({_by_hour(_ENDLESS, days)}),
            parts AS ({" UNION ALL ".join(parts)}),
            merged AS (
                SELECT {_KEY}, {", ".join(numbers)},
                    bool_and(complete) AND hour_us NOT IN (SELECT hour_us FROM unproven) AS complete
                FROM parts GROUP BY {_KEY}
            )
        SELECT * FROM (
            SELECT {HOUR}, vhost, user, CAST(us AS double) / {HOUR_US} AS connection_hours,
                {", ".join(_NUMBERS[1:])}, complete, {DATE}
            FROM merged
        ) AS merged_rows WHERE date IN {among(days)} ORDER BY date, vhost""")


#: SQL for the connections that have begun, but whose end may be lost: from the gap on, until the router's last record.
_ENDLESS: Final = """
    SELECT b.vhost, b.user, greatest(b.t_us, gone.from_us) AS from_us,
        greatest(ends.until_us, gone.from_us + 1) AS to_us
    FROM opened AS b JOIN lost AS gone ON gone.router = b.router AND gone.boot = b.boot AND gone.to_us >= b.t_us
    JOIN ends ON ends.router = b.router AND ends.boot = b.boot
    WHERE NOT EXISTS (SELECT 1 FROM closed AS e WHERE e.router = b.router AND e.boot = b.boot AND e.conn = b.conn)"""


def _only(name: str, value: str) -> str:
    """Return SQL for all numbers of a row, of which only ``name`` is known."""
    return ", ".join(f"{value if each == name else 'NULL'} AS {each}" for each in _NUMBERS)


def _spans(begun: str, ended: str, what: str, begun_at: str, more: str = "") -> str:
    """Return SQL for the begin and end of each connection or link, in microseconds, with its owner.

    ``begun_at`` is the field of the end's record with the time of the begin; 0 if it never began. ``more`` has further
    columns, of the begin ``b`` and the end ``e``.
    """
    return f"""
        SELECT coalesce(b.vhost, e.vhost) AS vhost, coalesce(b.user, e.user) AS user,
            coalesce(b.t_us, e.{begun_at}) AS from_us, coalesce(e.t_us, ends.until_us) AS to_us{more and f", {more}"}
        FROM {begun} AS b
        FULL OUTER JOIN {ended} AS e ON b.router = e.router AND b.boot = e.boot AND b.{what} = e.{what}
        JOIN ends ON ends.router = coalesce(b.router, e.router) AND ends.boot = coalesce(b.boot, e.boot)"""


_OF_BOTH: Final = (
    "coalesce(b.link, e.link) AS number, ends.router, ends.boot, b.n, b.conn, e.t_us IS NOT NULL AS has_end"
)
#: SQL for the begin and end of each link. One without an end of its own has ended with the next record that stands for
#: several ends of its user, or with its connection.
_LINKS: Final = f"""
    SELECT link.vhost, link.user, link.from_us,
        CASE WHEN has_end THEN link.to_us ELSE least(link.to_us, coalesce(min(several.t_us), link.to_us),
            coalesce(min(closed.t_us), link.to_us)) END AS to_us
    FROM ({_spans("attached", "detached", "link", "attached_at", _OF_BOTH)}) AS link
    LEFT JOIN detached AS several ON NOT has_end AND {summed_after("link")}
    LEFT JOIN closed ON NOT has_end AND closed.router = link.router AND closed.boot = link.boot
        AND closed.conn = link.conn
    GROUP BY link.vhost, link.user, link.from_us, link.to_us, has_end, link.router, link.boot, link.number, link.n"""


def _by_hour(spans: str, days: Collection[date]) -> str:
    """Return SQL that cuts each span at full hours, within the days."""
    begin_us, end_us = _first_us(min(days)), _first_us(max(days) + timedelta(days=1))
    return f"""
        SELECT {_KEY}, greatest(from_us, hour_us) AS from_us, least(to_us, hour_us + {HOUR_US}) AS to_us
        FROM (
            SELECT *, explode(sequence({hour_of("from_us")}, {hour_of("to_us - 1")}, {HOUR_US})) AS hour_us
            FROM (
                SELECT vhost, user, greatest(from_us, {begin_us}) AS from_us, least(to_us, {end_us}) AS to_us
                FROM ({spans}) AS spans WHERE from_us > 0
            ) AS clipped WHERE to_us > from_us
        ) AS hours"""


def _first_us(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1_000_000


def _peaks(cut: str, name: str) -> str:
    """Return SQL for the peak number of concurrent spans; one that ends as another begins is not concurrent."""
    return f"""
        SELECT {_KEY}, {_only(name, "max(present)")}, true AS complete FROM (
            SELECT {_KEY}, sum(change) OVER (
                PARTITION BY {_KEY} ORDER BY moment_us, change ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ) AS present
            FROM (
                SELECT {_KEY}, from_us AS moment_us, 1 AS change FROM {cut}
                UNION ALL SELECT {_KEY}, to_us, -1 FROM {cut}
            ) AS edges
        ) AS counted GROUP BY {_KEY}"""


def _counted(rows: str, name: str) -> str:
    """Return SQL for the number of records in each hour."""
    return f"""
        SELECT {hour_of("t_us")} AS hour_us, vhost, user, {_only(name, "count(*)")}, true AS complete
        FROM {rows} GROUP BY 1, 2, 3"""
