"""Alerts as records of a topic: the key is the alert, so that a compacted topic keeps the last state of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from trouter_pipeline.kafka.clients import client_of
from trouter_pipeline.kafka.failures import Cause, NotForwarded, failure
from trouter_pipeline.kafka.settings import Settings
from trouter_pipeline.kafka.tail import tail_of

#: The headers of a record.
MESSAGE_ID: Final = "amqp-message-id"
SUBJECT: Final = "amqp-subject"
#: Seconds that a full queue waits for room, and those beyond the time-out in which the last reports come.
_ROOM_S: Final = 1.0
_GRACE_S: Final = 5.0


def send(settings: Settings, rows: Iterable[Mapping[str, Any]]) -> None:
    """Send each row, with `alert`, `message_id`, `subject` and `body`, and wait until the brokers have all of them.

    NotForwarded if the topic does not take one of them.
    """
    with tail_of(settings, committed=False) as tail:
        tail.partitions()  # so that a topic that is not there is named
    sending = _Sending(settings)
    for row in rows:
        sending.produce(row)
    sending.finish()


class _Sending:
    """An idempotent producer, and the first failure of its records."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._cause = Cause()
        self._failure: NotForwarded | None = None
        options: dict[str, Any] = {
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "delivery.timeout.ms": int(settings.timeout_s * 1000),
            "error_cb": self._cause.note,
        }
        self._producer = client_of(Producer, options | settings.client())

    def produce(self, row: Mapping[str, Any]) -> None:
        headers = [(MESSAGE_ID, row["message_id"].encode()), (SUBJECT, row["subject"].encode())]
        while self._failure is None:
            try:
                self._producer.produce(
                    self._settings.topic,
                    key=row["alert"].encode(),
                    value=row["body"].encode(),
                    headers=headers,
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(_ROOM_S)
            except KafkaException as error:
                raise self._failed(error.args[0]) from None
            else:
                self._producer.poll(0)
                return
        raise self._failure

    def finish(self) -> None:
        left = self._producer.flush(self._settings.timeout_s + _GRACE_S)
        if self._failure is not None:
            raise self._failure
        if left:
            raise self._failed(KafkaError(KafkaError._MSG_TIMED_OUT))

    def _delivered(self, error: KafkaError | None, _: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = self._failed(error)

    def _failed(self, error: KafkaError) -> NotForwarded:
        return failure(self._settings.place, self._cause.of(error), "alerts")
