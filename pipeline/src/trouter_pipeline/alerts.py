"""Alerts as messages that leave the pipeline; `alerting` sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812  # its customary name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CONTENT_TYPE: Final = "application/json"


def messages(rows: DataFrame, alert: Column, message_id: Column, subject: Column, at: Column) -> DataFrame:
    """Return a message for each row, with its columns as a JSON object.

    ``alert`` names the alert, and ``message_id`` this state of it. ``at`` is the time by which alerts are ordered.
    """
    names = [name for name in rows.columns if name != "date"]
    body = F.to_json(F.struct(*names), {"ignoreNullFields": "false"})
    return rows.select(
        alert.alias("alert"),
        message_id.alias("message_id"),
        subject.alias("subject"),
        F.lit(CONTENT_TYPE).alias("content_type"),
        F.lit("data").alias("body_kind"),
        body.alias("body"),
        at.alias("at"),
    )


def without_known(alerts: DataFrame, before: DataFrame) -> DataFrame:
    """Return the messages whose ids are not among those of ``before``."""
    return alerts.join(before.select("message_id"), "message_id", "left_anti")
