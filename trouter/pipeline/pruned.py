"""What may be pruned of the records, and which days of tables stay as they are for it. No Arrow and no Spark here.

A day of a table is frozen once records were pruned that it was made of: computed again it would say less than what
happened. ``Manifest.pruned`` has what went, by kind and day: the tenants, or ``EVERYBODY``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Final

from trouter.pipeline.datasets import Manifest, manifest_of
from trouter.pipeline.tables import Table

#: Stands for all tenants, and for rows without a tenant.
EVERYBODY: Final = "*"
#: Tables whose days are frozen, with the kinds of records that a day of them is made of, and the job that makes them.
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
#: Kinds without which records of later days cannot be understood: few and small, and never pruned.
KEPT: Final[Mapping[str, str]] = {
    "records.dropped": "it says why others are missing",
    "policy.loaded": "it says which rules were in force on later days",
    "topology.change": "a neighbour of today may have come then",
    "config.reloaded": "it says when routers started",
}
#: Kinds that go together: without the end of it, a connection or link would be there for ever.
TOGETHER: Final = (("connection.opened", "connection.closed"), ("link.attached", "link.detached"))


def frozen_days(root: Path, table: str) -> frozenset[date]:
    """Days of a table that are not to be computed again; NoRecords, OSError."""
    return frozen_by(manifest_of(root), table)


def frozen_by(manifest: Manifest, table: str) -> frozenset[date]:
    """The same, as a manifest says."""
    days = (day for kind in MADE_OF.get(table, ()) for day in manifest.pruned.get(kind, {}))
    return frozenset(map(date.fromisoformat, days))


def pruned_days(table: Table) -> frozenset[date]:
    """Days of which rows of the table itself were pruned; BadTable, OSError."""
    manifest = table.manifest()
    return frozenset() if manifest is None else frozenset(map(date.fromisoformat, manifest.pruned))
