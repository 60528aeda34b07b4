"""``format("amqp")``: what Spark asks first, answered by the reader or the writer that the options call for.

Spark makes this object more than once, in short-lived processes too, so it holds options and nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

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

    @classmethod
    def name(cls) -> str:
        return "amqp"

    def schema(self) -> StructType:
        from trouter.pipeline.schema import SCHEMA  # noqa: PLC0415  # writers do without it

        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        made = import_module("trouter.pipeline.batch_source").AmqpReader(Options.parse(self.options, Side.READ), schema)
        return cast("DataSourceReader", made)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        made = import_module("trouter.pipeline.stream_source").stream_reader(
            Options.parse(self.options, Side.READ), schema
        )
        return cast("DataSourceStreamReader", made)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        made = import_module("trouter.pipeline.sink").AmqpWriter(
            Options.parse(self.options, Side.WRITE), schema, overwrite
        )
        return cast("DataSourceWriter", made)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        made = import_module("trouter.pipeline.sink").AmqpStreamWriter(
            Options.parse(self.options, Side.WRITE), schema, overwrite
        )
        return cast("DataSourceStreamWriter", made)


def register(spark: SparkSession) -> None:
    """Let ``spark`` know ``format("amqp")``."""
    spark.dataSource.register(AmqpDataSource)
