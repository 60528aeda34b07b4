"""Sending of alerts: as messages to an address, by the sink, and as records to a topic of Kafka.

A job sends the alerts of a batch before it forgets the batch, so a crash sends them again, and never loses them. An
alert has the same id each time, by which a receiver drops the second of two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from trouter_pipeline.kafka.failures import NotForwarded

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from trouter_pipeline.kafka.settings import Settings

_FAILURE: Final = "failure string"


@dataclass(frozen=True, slots=True)
class Receivers:
    """Where alerts go: to a server of AMQP, by the options of the sink, and to a topic of Kafka; each may be absent."""

    amqp: Mapping[str, str] = field(default_factory=dict, repr=False)
    kafka: Settings | None = None

    def send(self, alerts: DataFrame) -> None:
        """Send all `messages`, in the order of their times; return once they are accepted.

        NotForwarded for a topic, and Spark's error, with the sink's text, for an address.
        """
        from trouter_pipeline.datasource import register  # noqa: PLC0415  # the command line needs no Spark

        # One task: alerts are few, and each task has a connection of its own.
        ordered = alerts.coalesce(1).sortWithinPartitions("at", "message_id")
        if self.amqp:
            register(alerts.sparkSession)
            columns = ordered.select("message_id", "subject", "content_type", "body_kind", "body")
            columns.write.format("amqp").options(**self.amqp).mode("append").save()
        if self.kafka is not None:
            columns = ordered.select("alert", "message_id", "subject", "body")
            for row in columns.mapInArrow(_Topic(self.kafka), _FAILURE).collect():
                raise NotForwarded(row["failure"])


@dataclass(frozen=True)
class _Topic:
    """What a task does: send rows to a topic. Spark pickles it for the workers."""

    settings: Settings

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row with the failure, or none; a failure that is raised would make Spark send all rows again."""
        import pyarrow as pa  # noqa: PLC0415  # in a task

        from trouter_pipeline.kafka.alerts import send  # noqa: PLC0415

        try:
            send(self.settings, (row for batch in batches for row in batch.to_pylist()))
        except NotForwarded as error:
            yield pa.RecordBatch.from_pylist([{"failure": str(error)}])
