"""``format("amqp")``: the entry of Spark, which makes the reader or writer for the options.

Spark makes this object more than once, also in short-lived processes, so it holds only the options and the id of a
``load``.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from trouter_pipeline.options import Options, Side

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
        #: The same in every copy that Spark makes, however often it plans the load.
        self.load = uuid.uuid4().hex

    @classmethod
    def name(cls) -> str:
        return "amqp"

    def schema(self) -> StructType:
        from trouter_pipeline.schema import SCHEMA  # noqa: PLC0415  # not needed if the user gives a schema

        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        from trouter_pipeline.batch_source import AmqpReader  # noqa: PLC0415  # each process does one of the four

        return AmqpReader(Options.parse(self.options, Side.READ), schema, self.load)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        from trouter_pipeline.stream_source import AmqpStreamReader  # noqa: PLC0415

        return AmqpStreamReader(Options.parse(self.options, Side.READ), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from trouter_pipeline.sink import AmqpWriter  # noqa: PLC0415

        return AmqpWriter(Options.parse(self.options, Side.WRITE), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        from trouter_pipeline.sink import AmqpStreamWriter  # noqa: PLC0415

        return AmqpStreamWriter(Options.parse(self.options, Side.WRITE), schema, overwrite)


def register(spark: SparkSession) -> None:
    """Register ``format("amqp")`` in ``spark``."""
    spark.dataSource.register(AmqpDataSource)
