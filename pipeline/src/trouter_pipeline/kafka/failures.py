"""Failures at a Kafka cluster, as sentences with the cure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from confluent_kafka import KafkaError


class NotForwarded(Exception):
    """Messages cannot be forwarded; the text names the place and the cure."""


#: What a code of librdkafka's means, by its name; the text has the place before it.
_MEANINGS: Final = {
    "UNKNOWN_TOPIC_OR_PART": "there is no such topic or partition: create the topic, with a partition for each source",
    "_UNKNOWN_TOPIC": "there is no such topic: create it, with a partition for each source",
    "_UNKNOWN_PARTITION": "there is no such partition: add partitions to the topic, or name others with --partition",
    "TOPIC_AUTHORIZATION_FAILED": "the user may not write to the topic, or not read it: both are needed, for a writer "
    "that starts reads where the last one ended",
    "CLUSTER_AUTHORIZATION_FAILED": "the user may not write idempotently: grant IdempotentWrite on the cluster",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "the user may not use the transactional ids trouter-*: grant them, or "
    "give --transactions off",
    "_AUTHENTICATION": "the login failed: see --sasl-mechanism, --sasl-user and --sasl-password-file",
    "SASL_AUTHENTICATION_FAILED": "the login failed: see --sasl-user and --sasl-password-file",
    "MSG_SIZE_TOO_LARGE": "the message is larger than the topic allows: raise its max.message.bytes, and run again",
    "RECORD_LIST_TOO_LARGE": "the batch is larger than the topic allows: raise its segment.bytes, or give "
    "--property batch.size=100000",
    "INVALID_RECORD": "the broker refuses the record; a compacted topic takes only records with keys: see --key",
    "POLICY_VIOLATION": "a policy of the broker refuses the record",
    "_MSG_TIMED_OUT": "no broker has acknowledged the record in time: the leader of the partition is away, its disk is "
    "full, or too few replicas are in sync. Run again when it is back: nothing is lost, and nothing comes twice",
    "_TIMED_OUT": "the brokers did not answer in time. Run again when they do: nothing is lost or comes twice",
    "_TRANSPORT": "no broker can be reached: see the address, and --tls",
    "_ALL_BROKERS_DOWN": "no broker can be reached: see the address, and --tls",
    "_SSL": "TLS failed: see --tls-ca, --tls-certificate and --tls-key",
    "_FENCED": "another writer has taken over this spool: only one may forward it. End one of them",
    "PRODUCER_FENCED": "another writer has taken over this spool: only one may forward it. End one of them",
    "INVALID_PRODUCER_EPOCH": "another writer has taken over this spool: only one may forward it. End one of them",
}


#: What tells more than a request that failed because of it.
_CAUSES: Final = frozenset(("_SSL", "_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_FENCED", "PRODUCER_FENCED"))


class Cause:
    """Keeps the error of a client's connections because of which its requests fail."""

    def __init__(self) -> None:
        self._error: KafkaError | None = None

    def note(self, error: KafkaError) -> None:
        """Keep an error if it is such a cause; librdkafka calls this."""
        if error.name() in _CAUSES:
            self._error = error

    @property
    def is_known(self) -> bool:
        return self._error is not None

    def of(self, error: KafkaError) -> KafkaError:
        """Return the cause of a request's error, which may be itself."""
        return self._error or error


def failure(place: str, error: KafkaError, what: str = "") -> NotForwarded:
    """Return a failure of librdkafka's at a topic; ``what`` names the message that it is about."""
    if what:
        place = f"{what}, to {place}"
    meaning = _MEANINGS.get(error.name(), "")
    return NotForwarded(f"{place}: {meaning} ({error.str()})" if meaning else f"{place}: {error.str()}")
