"""A writer of one spool's messages to a topic: each once, in order within a partition."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer

from trouter_pipeline.kafka.clients import client_of
from trouter_pipeline.kafka.failures import Cause, NotForwarded, failure
from trouter_pipeline.kafka.records import Record, murmur2
from trouter_pipeline.kafka.settings import Settings
from trouter_pipeline.kafka.tail import tail_of

#: What brokers without transactions answer.
_NO_TRANSACTIONS: Final = frozenset(
    (KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION, KafkaError._NOT_IMPLEMENTED)
)
#: The longest transaction that brokers allow by default.
_TRANSACTION_MS: Final = 900_000
#: Seconds that a full queue waits for room.
_ROOM_S: Final = 1.0
#: Seconds beyond the time-out in which librdkafka reports its last records.
_GRACE_S: Final = 5.0


class Counts(NamedTuple):
    """How many messages were sent, and how many were there already."""

    sent: int
    known: int


class Writer:
    """Writes the messages of one spool; only one may be alive for a spool.

    ``start`` is the first sequence that may not be in the topic yet. ``partition`` is that of the source, None if a
    field chooses. NotForwarded if the topic cannot be reached.
    """

    def __init__(self, settings: Settings, spool: str, start: int, partition: int | None) -> None:
        self._settings = settings
        self._spool = spool
        self._partition = partition
        self._failure: NotForwarded | None = None
        self._cause = Cause()
        with tail_of(settings, committed=False) as tail:
            self._partitions = tail.partitions()
        if partition is not None and partition not in self._partitions:
            raise failure(settings.place, KafkaError(KafkaError._UNKNOWN_PARTITION), f"partition {partition}")
        self._producer, self._transactional = self._connected()
        with tail_of(settings, committed=self._transactional) as tail:
            read = self._partitions if partition is None else [partition]
            self._known = tail.sent(spool, start, read)
        self._begun = False
        self._count = self._skipped = 0

    def _connected(self) -> tuple[Producer, bool]:
        """Return an idempotent producer, and whether its batches are transactions, which fence an older one."""
        settings = self._settings
        timeout_ms = int(settings.timeout_s * 1000)
        common: dict[str, Any] = {
            "enable.idempotence": True,
            "linger.ms": 5,
            "message.max.bytes": 1_000_000_000,  # the broker decides
            "error_cb": self._cause.note,
        }
        if settings.transactions:
            name = f"trouter-{settings.topic}-{self._spool}"
            options = {"transactional.id": name, "transaction.timeout.ms": max(_TRANSACTION_MS, timeout_ms)}
            producer = client_of(Producer, common | {"delivery.timeout.ms": timeout_ms} | settings.client() | options)
            try:
                producer.init_transactions(settings.timeout_s)
            except KafkaException as error:
                if error.args[0].code() not in _NO_TRANSACTIONS:
                    raise self._failed(error.args[0]) from None
            else:
                return producer, True
        return client_of(Producer, common | {"delivery.timeout.ms": timeout_ms} | settings.client()), False

    def send(self, records: Iterable[Record]) -> None:
        """Send records in their order, but those that the topic has already; NotForwarded."""
        for record in records:
            if record.seq in self._known:
                self._require_same(record, self._known.pop(record.seq))
                self._skipped += 1
                continue
            if self._transactional and not self._begun:
                self._call(self._producer.begin_transaction)
                self._begun = True
            self._produce(record)
            self._count += 1
            if self._failure is not None:
                raise self._failure

    def _require_same(self, record: Record, sent: int) -> None:
        """Raise NotForwarded if the topic has another message, with this hash of its value, in a record's place."""
        if hash(record.value) != sent:
            raise NotForwarded(
                f"{self._settings.place} has another message {record.seq} of spool {self._spool}: the folder of the "
                "spool was put back from a backup, or a copy of it was filled, and what came since would be left out. "
                "Move it away, and let `trouter pipeline spool` begin a new one"
            )

    def _produce(self, record: Record) -> None:
        partition = self._partition
        if partition is None:
            partition = self._partitions[murmur2(record.chooser or b"") % len(self._partitions)]
        done = partial(self._delivered, record.seq)
        while True:
            try:
                self._producer.produce(
                    self._settings.topic,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    partition=partition,
                    on_delivery=done,
                )
            except BufferError:
                self._producer.poll(_ROOM_S)
            except KafkaException as error:
                raise self._failed(error.args[0], record.seq) from None
            else:
                self._producer.poll(0)
                return
            if self._failure is not None:
                raise self._failure

    def _delivered(self, seq: int, error: KafkaError | None, _: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = self._failed(error, seq)

    def _failed(self, error: KafkaError, seq: int | None = None) -> NotForwarded:
        """Return a failure, by the reason for which the producer itself has ended, if it has."""
        what = f"spool {self._spool}" if seq is None else f"message {seq} of spool {self._spool}"
        return failure(self._settings.place, self._cause.of(error), what)

    def _call(self, call: Any, *arguments: Any) -> None:
        """Call the producer for its transaction, again while it says that this may help; NotForwarded."""
        while True:
            try:
                call(*arguments)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise self._failure or self._failed(error.args[0]) from None
            else:
                return

    def finish(self) -> Counts:
        """Wait until the brokers have all that was sent, and return the counts since the last time; NotForwarded."""
        left = self._producer.flush(self._settings.timeout_s + _GRACE_S)
        if self._failure is not None:
            raise self._failure
        if left:
            raise self._failed(KafkaError(KafkaError._MSG_TIMED_OUT))
        if self._begun:
            self._call(self._producer.commit_transaction, self._settings.timeout_s)
            self._begun = False
        counts = Counts(self._count, self._skipped)
        self._count = self._skipped = 0
        return counts

    def close(self) -> None:
        """Drop what was not finished: a transaction of it is aborted, by this writer or the next one."""
        if self._begun:
            try:
                self._producer.purge()
                self._producer.abort_transaction(_GRACE_S)
            except KafkaException:
                return  # the next writer of the spool aborts it, with its own start
            self._begun = False
