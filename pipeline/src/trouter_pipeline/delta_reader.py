"""Spark's own reader of Delta tables, ``format("delta")``, where the user's Spark has one: delta-spark or Databricks.

Elsewhere a version is read by the list of its files (`delta.Version.frame`); both give the same rows. Spark's setting
``spark.trouter.reader`` chooses: ``auto`` (the default) takes ``delta`` where it is set up, but not for an object
store, which Spark may not reach, or with other credentials than ours; ``delta`` demands it; ``files`` takes the list.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812  # its customary name
from pyspark.sql.types import StructType

from trouter_pipeline.delta import BadTable, Version
from trouter_pipeline.parquet import File
from trouter_pipeline.reasons import FAILURES, reason_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from trouter_pipeline.places import Place

#: The name of the source.
FORMAT: Final = "delta"
#: The setting, and its values.
READER: Final = "spark.trouter.reader"
AUTO: Final = "auto"
DELTA: Final = "delta"
FILES: Final = "files"
#: What a session of delta-spark is set up with; Databricks sets up its own.
EXTENSIONS: Final = ("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
CATALOG: Final = ("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
_OPEN_SOURCE: Final = "org.apache.spark.sql.delta."


def is_chosen(spark: SparkSession, folder: Place) -> bool:
    """Return whether Spark's own reader is to read this folder; BadTable if it is demanded and not there."""
    chosen = spark.conf.get(READER, AUTO)
    if chosen not in {AUTO, DELTA, FILES}:
        raise BadTable(f"{READER} is {chosen!r}: it must be {AUTO}, {DELTA} or {FILES}")
    if chosen == FILES or (chosen == AUTO and not folder.is_local):
        return False
    lacks = lacking(spark)
    if lacks and chosen == DELTA:
        raise BadTable(f"{READER} is {DELTA}, and {lacks}; without this setting tables are read by their files")
    return not lacks


def lacking(spark: SparkSession) -> str:
    """Return what this session lacks to read Delta tables itself, with the cure; "" for nothing."""
    source = source_class(spark, FORMAT)
    if source is None:
        return "Spark has no source of this name: give it --packages io.delta:delta-spark_2.13:VERSION for its version"
    if not source.startswith(_OPEN_SOURCE):
        return ""
    unset = [f"--conf {name}={value}" for name, value in (EXTENSIONS, CATALOG) if value not in _set_to(spark, name)]
    return f"its session is not set up for it: give {' '.join(unset)}" if unset else ""


def _set_to(spark: SparkSession, name: str) -> list[str]:
    return (spark.conf.get(name, "") or "").split(",")


def source_class(spark: SparkSession, name: str) -> str | None:
    """Return the class of a source of Spark's, None if its jar is not there."""
    jvm: Any = spark.sparkContext._jvm
    session: Any = spark._jsparkSession
    lookup = jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource
    try:
        return str(lookup(name, session.sessionState().conf()).getName())
    except FAILURES:
        return None


def frame(spark: SparkSession, version: Version, files: Sequence[File], schema: StructType | None = None) -> DataFrame:
    """Return the rows of these files in Spark, with all columns or those of ``schema``; BadTable."""
    if is_chosen(spark, version.folder):
        wanted = schema or StructType.fromJson(json.loads(version.schema_text))
        found = rows(spark, version, files, wanted)
        if found is not None:
            return found
    return version.frame(spark, files, schema)


def rows(spark: SparkSession, version: Version, files: Sequence[File], schema: StructType) -> DataFrame | None:
    """Return the rows of these files with the columns of ``schema``, read by Spark itself at this version.

    None if they are not all files of their partitions, which only the list can say. BadTable if Spark refuses.
    """
    wanted = {file.partition for file in files}
    if len(files) != sum(1 for file in version.files if file.partition in wanted):
        return None
    reader = spark.read.format(FORMAT).option("versionAsOf", version.number)
    try:
        found = reader.load(str(version.folder))
        if len(files) < len(version.files):
            found = found.where(_in_partitions(version, wanted))
        columns = [
            F.col(f"`{each.name}`")
            if each.name in found.columns
            else F.lit(None).cast(each.dataType).alias(each.name)  # an older version of the table lacks it
            for each in schema
        ]
        return found.select(*columns)
    except FAILURES as error:
        raise BadTable(
            f"{version.folder}: Spark cannot read version {version.number} as a Delta table: {reason_of(error)}; with "
            f"--conf {READER}={FILES} its files are read by their list"
        ) from None


def _in_partitions(version: Version, wanted: Collection[tuple[str | None, ...]]) -> Column:
    """Return the condition that a row is in one of these partitions: a list for the last column, under the others."""
    if not wanted:
        return F.lit(False)
    above, last = version.partition[:-1], version.partition[-1]
    lists: dict[tuple[str | None, ...], list[str | None]] = {}
    for each in sorted(wanted, key=str):
        lists.setdefault(each[:-1], []).append(each[-1])
    found = []
    for named, values in lists.items():
        equal = [_is_one_of(version, name, [value]) for name, value in zip(above, named, strict=True)]
        found.append(reduce(and_, [*equal, _is_one_of(version, last, values)]))
    return reduce(or_, found)


def _is_one_of(version: Version, name: str, values: Sequence[str | None]) -> Column:
    column = F.col(f"`{name}`")
    texts = [F.lit(value).cast(version.columns[name]) for value in values if value is not None]
    found = [column.isin(texts)] if texts else []
    return reduce(or_, [*found, *([column.isNull()] if None in values else [])])
