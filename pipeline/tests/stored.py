"""Tables as the jobs commit them, written with Arrow alone, for tests that only read tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from trouter_pipeline.places import Place, Where
from trouter_pipeline.report.stored import COLUMNS
from trouter_pipeline.tables import Table

TODAY = date(2026, 3, 1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def store(root: Where, name: str, rows: Sequence[Mapping[str, Any]], day: date = TODAY) -> Place:
    """Commit a day of a table; return its one file, if there are rows."""
    columns = {column: kind for column, kind in COLUMNS[name].items() if column != "date"}
    found = pa.Table.from_pylist([dict(row) for row in rows], pa.schema(list(columns.items())))
    found = found.append_column("date", pa.array([day] * found.num_rows, pa.date32()))
    table = Table(root, name)
    table.commit(found, [day], inputs={}, job=name, version=1, parameters={})
    return table.folder / "/".join(file.path for file in table.files([day]))


def metered(vhost: str, hours: int = 24, msgs: int = 100, **changed: Any) -> list[dict[str, Any]]:
    """Return rows of the meter: ``msgs`` messages in each hour, one in ten released and one in a hundred rejected."""
    return [
        {
            "hour": NOON + timedelta(hours=hour), "vhost": vhost, "user": "u", "addr": f"{vhost}/orders", "dir": "in",
            "msgs": msgs + hour, "bytes": 100 * msgs, "accepted": msgs - msgs // 10 - msgs // 100 + hour,
            "rejected": msgs // 100, "released": msgs // 10, "modified": 0, "presettled": 0, "dropped": 0,
            "estimated_msgs": 0, "complete": True, **changed,
        }
        for hour in range(hours)
    ]  # fmt: skip


def a_day(root: Path, hostile: str = "acme") -> None:
    """Write some rows of every table; ``hostile`` stands in each text that a peer chooses."""
    store(root, "meter", [*metered(hostile, msgs=1000), *metered("globex", msgs=300), *metered("initech", hours=3)])
    store(
        root,
        "meter_conn",
        [
            {"hour": NOON + timedelta(hours=hour), "vhost": vhost, "user": "u", "connection_hours": 3.5,
             "peak_connections": 4 + hour % 5, "failed": hour % 3}
            for hour in range(24) for vhost in (hostile, "globex")
        ],
    )  # fmt: skip
    store(
        root,
        "meter_gaps",
        [
            {"router": hostile, "boot": 1, "from_n": 10, "to_n": 19, "t_from": NOON, "t_to": NOON + timedelta(hours=1),
             "explained": True, "reason": "disk-full"},
            {"router": "B", "boot": 1, "from_n": 5, "to_n": 5, "t_from": NOON, "t_to": NOON + timedelta(seconds=1),
             "explained": False, "reason": None},
        ],
    )  # fmt: skip
    store(
        root,
        "audit_alerts",
        [
            {"alert_id": "a1", "rule": "brute-force", "user": hostile, "host": "192.0.2.9", "vhost": None,
             "first_at": NOON, "last_at": NOON + timedelta(minutes=3), "failures": 40, "distinct": 1,
             "evidence": ["A~7~1", "A~7~2", "A~7~3"]},
            {"alert_id": "a2", "rule": "spray", "user": None, "host": hostile, "vhost": None,
             "first_at": NOON + timedelta(hours=5), "last_at": NOON + timedelta(hours=6), "failures": 60,
             "distinct": 40, "evidence": ["A~7~9"]},
        ],
    )  # fmt: skip
    store(root, "audit_rules", [{"vhost": hostile, "rule": f"{hostile}:staff:sources:1", "allowed": 0, "denied": 0},
                                {"vhost": "globex", "rule": "globex:all", "allowed": 90, "denied": 7}])  # fmt: skip
    later = NOON + timedelta(minutes=9)
    store(root, "fraud_alerts", [{"key": hostile, "large_n": 7, "tester_t": NOON, "large_t": later,
                                  "tester_amount": 1.0, "large_amount": 900.0}])  # fmt: skip
    store(root, "latency", [{"hour": NOON + timedelta(hours=hour), "vhost": "globex", "addr": addr, "cnt": 100,
                             "max_us": 5_000, "bi": [31, 200, 250], "bc": [50, 45, 5]}
                            for hour in range(3) for addr in (hostile, "quiet")])  # fmt: skip
    store(root, "top", [{"hour": NOON, "dimension": dimension, "rank": rank,
                         "subject": hostile if rank == 1 else f"s{rank}", "msgs": 1000 // rank, "bytes": 99,
                         "share": 1 / rank}
                        for dimension in ("vhost", "addr", "user") for rank in range(1, 13)])  # fmt: skip
    store(root, "topology_history", [{"router": "A", "peer": hostile, "up_at": NOON + timedelta(minutes=minute),
                                      "down_at": NOON + timedelta(minutes=minute + 1), "cost": 1, "flap": True,
                                      "converge_us": 1500} for minute in range(0, 50, 5)]
          + [{"router": "A", "peer": "C", "up_at": NOON, "down_at": None, "cost": None, "flap": False,
              "converge_us": None}])  # fmt: skip
