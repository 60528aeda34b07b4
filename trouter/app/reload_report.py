"""The report of a reload, for the management client that asked for it and for the log."""

from __future__ import annotations

import logging

from trouter.config import Changes, Updated
from trouter.management.ports import ReloadReport

log = logging.getLogger("trouter.MAIN")


def report_of(changes: Changes) -> ReloadReport:
    """Return the report of the changes that a reload made."""
    return ReloadReport(
        created=tuple(entity.identity for entity in changes.created),
        updated=tuple(_updated(each) for each in changes.updated),
        deleted=tuple(entity.identity for entity in changes.deleted),
        kept=changes.kept,
        restart=changes.restart,
    )


def _updated(each: Updated) -> str:
    return f"{each.new.identity}: {', '.join(each.attributes)}"


def log_reload(report: ReloadReport, source: str) -> None:
    """Log the report of a reload from ``source``."""
    log.info(
        "Reloaded %s: %d created, %d updated, %d deleted, %d kept",
        source,
        len(report.created),
        len(report.updated),
        len(report.deleted),
        report.kept,
    )
    log_changes(report)
    for line in report.restart:
        log.warning("needs a restart: %s", line)


def log_changes(report: ReloadReport) -> None:
    """Log each entity that was created, updated or deleted."""
    for what, lines in (("created", report.created), ("updated", report.updated), ("deleted", report.deleted)):
        for line in lines:
            log.info("%s %s", what, line)
