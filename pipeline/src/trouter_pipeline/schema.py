"""The columns of ``format("amqp")``: every message that Spark reads is one row, valid or not.

Absent values are null, never a default. AMQP types that Spark lacks are kept beside the text of the
value: ``message_id_type``, the ``type`` of each entry of a map, and the tags in the JSON of ``body_value``.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

#: A map of annotations or properties: keys of an unusual type have it as prefix, as in `ulong:7`.
_TYPED: Final = MapType(
    StringType(), StructType([StructField("type", StringType()), StructField("value", StringType())])
)

_HEADER: Final = StructType(
    [
        StructField("durable", BooleanType()),
        StructField("priority", ShortType()),
        StructField("ttl", LongType()),
        StructField("first_acquirer", BooleanType()),
        StructField("delivery_count", LongType()),
    ]
)

#: The columns in their order.
COLUMNS: Final[tuple[tuple[str, DataType], ...]] = (
    # Facts of the spool about the message.
    ("spool_id", StringType()),
    ("seq", LongType()),
    ("ingest_time", TimestampType()),
    ("shard", IntegerType()),
    ("address", StringType()),
    ("delivery_tag", BinaryType()),
    ("message_format", LongType()),
    ("settled", BooleanType()),
    # The message.
    ("header", _HEADER),
    ("delivery_annotations", _TYPED),
    ("message_annotations", _TYPED),
    ("message_id", StringType()),
    ("message_id_type", StringType()),
    ("user_id", BinaryType()),
    ("to", StringType()),
    ("subject", StringType()),
    ("reply_to", StringType()),
    ("correlation_id", StringType()),
    ("correlation_id_type", StringType()),
    ("content_type", StringType()),
    ("content_encoding", StringType()),
    ("absolute_expiry_time", TimestampType()),
    ("creation_time", TimestampType()),
    ("group_id", StringType()),
    ("group_sequence", LongType()),
    ("reply_to_group_id", StringType()),
    ("application_properties", _TYPED),
    ("body_kind", StringType()),
    ("body", BinaryType()),
    ("body_parts", ArrayType(BinaryType())),
    ("body_value", StringType()),
    ("footer", _TYPED),
    # The fault and the bytes of an invalid message; null for a valid one.
    ("error", StringType()),
    ("raw", BinaryType()),
)

SCHEMA: Final = StructType([StructField(name, kind) for name, kind in COLUMNS])
