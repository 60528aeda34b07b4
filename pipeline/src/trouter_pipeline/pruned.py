"""The kinds of records that may be pruned, and the days of tables that are frozen by it, without Arrow and Spark.

A day of a table is frozen once records for it were pruned, because computing it again would lose counts.
``Records.pruned`` has the tenants of deleted rows by kind and day, or ``EVERYBODY``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Final

from trouter_pipeline.datasets import Records
from trouter_pipeline.tables import Table

#: All tenants, and rows without a tenant.
EVERYBODY: Final = "*"
#: Tables whose days can be frozen, with the kinds of records that they are made of, and their jobs.
MADE_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "meter": ("delivery.interval", "link.attached", "link.detached"),
    "meter_conn": ("connection.opened", "connection.closed", "link.attached", "link.detached"),
    "latency": ("latency.sketch",),
    "audit_alerts": ("sasl.outcome", "policy.decision"),
    "audit_rules": ("policy.decision",),
}
JOBS: Final[Mapping[str, str]] = {
    "meter": "meter",
    "meter_conn": "meter",
    "latency": "latency",
    "audit_alerts": "audit",
    "audit_rules": "audit",
}
#: Kinds that records of later days need: few and small, and never pruned.
KEPT: Final[Mapping[str, str]] = {
    "records.dropped": "it says why others are missing",
    "policy.loaded": "it says which rules were in force on later days",
    "topology.change": "a neighbour of today may have come then",
    "config.reloaded": "it says when routers started",
}
#: Kinds that are pruned together: without its end, a connection or link would seem to last for ever.
TOGETHER: Final = (("connection.opened", "connection.closed"), ("link.attached", "link.detached"))


def frozen_by(records: Records, table: str) -> frozenset[date]:
    """Return the frozen days of a table by a version of the records."""
    days = (day for kind in MADE_OF.get(table, ()) for day in records.pruned.get(kind, {}))
    return frozenset(map(date.fromisoformat, days))


def pruned_days(table: Table) -> frozenset[date]:
    """Return the days of which rows of the table itself were pruned; BadTable, OSError."""
    commit = table.last_commit()
    return frozenset() if commit is None else frozenset(map(date.fromisoformat, commit.pruned))
