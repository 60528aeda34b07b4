"""``format("amqp")``: what Spark asks first, answered by the reader or the writer that the options call for.

Spark makes this object more than once, in short-lived processes too, so it holds options, what tells one ``load`` from
another, and nothing else.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from trouter.pipeline.options import Options, Side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


class AmqpDataSource(DataSource):
    """Messages of AMQP 1.0, as rows."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        #: The same wherever Spark takes this object to, and however often it plans what was loaded.
        self.load = uuid.uuid4().hex

    @classmethod
    def name(cls) -> str:
        return "amqp"

    def schema(self) -> StructType:
        from trouter.pipeline.schema import SCHEMA  # noqa: PLC0415  # who gives one does without

        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        from trouter.pipeline.batch_source import AmqpReader  # noqa: PLC0415  # each process does one of the four

        return AmqpReader(Options.parse(self.options, Side.READ), schema, self.load)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        from trouter.pipeline.stream_source import AmqpStreamReader  # noqa: PLC0415

        return AmqpStreamReader(Options.parse(self.options, Side.READ), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from trouter.pipeline.sink import AmqpWriter  # noqa: PLC0415

        return AmqpWriter(Options.parse(self.options, Side.WRITE), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        from trouter.pipeline.sink import AmqpStreamWriter  # noqa: PLC0415

        return AmqpStreamWriter(Options.parse(self.options, Side.WRITE), schema, overwrite)


def register(spark: SparkSession) -> None:
    """Let ``spark`` know ``format("amqp")``."""
    spark.dataSource.register(AmqpDataSource)
