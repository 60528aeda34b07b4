"""Clients of librdkafka's, made of its options."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer

from trouter_pipeline.kafka.failures import NotForwarded

#: What librdkafka logs; its errors are those of `failures`.
log = logging.getLogger("trouter_pipeline.kafka")
log.addHandler(logging.NullHandler())

Client = TypeVar("Client", Consumer, Producer)


def client_of(kind: type[Client], options: Mapping[str, Any]) -> Client:
    """Return a client with these options; NotForwarded if there is no such option, or its value is wrong."""
    try:
        return kind(dict(options), logger=log)
    except KafkaException as error:
        raise NotForwarded(f"librdkafka refuses its settings: {error.args[0].str()}") from None
