"""A table that grows by batches, each of which becomes visible as a whole, by the rename of one folder.

    ROOT/tables/NAME/_land.json                                checkpoint and columns of the table
    ROOT/tables/NAME/data/batch=N/address=A/date=D/*.parquet   one micro-batch, never changed
    ROOT/tables/NAME/.staging/                                 unfinished files of a run
    ROOT/tables/NAME/LOCK                                      locked by the landing process

A batch that is repeated after a crash finds its folder and is skipped. So any program that reads the files under `data`
reads every row once, without a log. Dead letters go the same way into the table `NAME_dead`.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

import msgspec
import pyarrow.parquet as pq

from trouter._disk import sync
from trouter_pipeline.manifests import read_manifest
from trouter_pipeline.tables import locked, make_folder, replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IDENTITY: Final = "_land.json"
VERSION: Final = 1
#: The column that separates dead letters; it is in no table.
DEAD: Final = "_dead"
DEAD_SUFFIX: Final = "_dead"


class NotLanded(Exception):
    """Rows cannot be landed here; the text names the place and the cure."""


class Identity(msgspec.Struct, omit_defaults=True):
    """The identity of a landed table: Spark's id of the checkpoint, and the columns in Spark's spelling."""

    version: int
    checkpoint: str
    schema: str
    parameters: dict[str, str]


class Part(NamedTuple):
    """The rows of one address in a batch."""

    address: str
    dead: bool


class Landing:
    """The tables NAME and NAME_dead of one stream; ``held`` locks them for landing."""

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.folder = Path(root) / "tables" / name
        self.graves = Path(root) / "tables" / (name + DEAD_SUFFIX)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the tables for this process; TableBusy, OSError."""
        for folder in (self.folder, self.graves):
            make_folder(folder / "data")
        with locked(self.folder / "LOCK"):
            shutil.rmtree(self.folder / ".staging", ignore_errors=True)
            yield

    def claim(self, checkpoint: Path, schema: str, parameters: Mapping[str, str]) -> None:
        """Bind the tables to a checkpoint and a schema, or verify that they are; NotLanded, OSError."""
        path = checkpoint / "metadata"
        try:
            query = str(msgspec.json.decode(path.read_bytes().strip())["id"])
        except (ValueError, KeyError, TypeError) as error:
            raise NotLanded(f"{path} is no checkpoint of Spark's: {error}") from None
        wanted = Identity(VERSION, query, schema, dict(parameters))
        known = self.identity()
        if known is None:
            for folder in (self.graves, self.folder):
                replace(folder / IDENTITY, msgspec.json.encode(wanted))
        elif known.checkpoint != query:
            raise NotLanded(
                f"{self.folder} was landed with another checkpoint than {checkpoint}, and with this one it would get "
                "its rows twice: give the former checkpoint, or another --name"
            )
        elif known.schema != schema:
            raise NotLanded(
                f"{self.folder} has the columns {known.schema}, not {schema}: give the former schema, or another --name"
            )

    def identity(self) -> Identity | None:
        """Return the identity of the table; None before the first batch. NotLanded, OSError."""
        return read_manifest(self.folder / IDENTITY, Identity, (VERSION,), "a landed table", NotLanded)

    def batches(self) -> dict[str, int]:
        """Return the landed batches by name, with their numbers; a batch never changes."""
        return {path.name: int(path.name.partition("=")[2]) for path in (self.folder / "data").glob("batch=*")}

    def land(self, frame: DataFrame, batch: int) -> Counter[Part]:
        """Land a batch unless it is there already; return the number of rows of each part.

        ``frame`` has the columns `address`, `date` and ``DEAD``, and is computed once. OSError, and Spark's errors.
        """
        places = {False: self.folder / "data" / _batch(batch), True: self.graves / "data" / _batch(batch)}
        if places[False].exists():
            return Counter()
        staged = self.folder / ".staging" / str(uuid.uuid4())
        try:
            frame.write.option("compression", "zstd").partitionBy(DEAD, "address", "date").parquet(
                str(staged.absolute())
            )
            counts: Counter[Part] = Counter()
            for dead in (True, False):  # the good rows last: they complete the batch
                part = staged / f"{DEAD}={str(dead).lower()}"
                make_folder(part)
                counts += _settle(part, dead)
                if dead and places[True].exists():
                    continue
                part.rename(places[dead])
                sync(places[dead].parent)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        return counts


def landed(spark: SparkSession, root: Path, name: str, *, dead: bool = False) -> DataFrame:
    """Return the rows of a landed table, or of its dead letters. NotLanded, OSError."""
    landing = Landing(root, name)
    known = landing.identity()
    if known is None:
        raise NotLanded(f"{landing.folder}: no message was landed here yet")
    data = (landing.graves if dead else landing.folder) / "data"
    schema = f"{known.schema}, `address` string, `date` date"
    return spark.read.schema(schema).option("basePath", str(data)).parquet(str(data)).drop("batch")


def _batch(number: int) -> str:
    return f"batch={number:010}"


def _settle(part: Path, dead: bool) -> Counter[Part]:
    """Sync the files that Spark wrote for one table; return the number of rows by part."""
    counts: Counter[Part] = Counter()
    for folder, _, names in os.walk(part, topdown=False):
        for name in names:
            file = Path(folder, name)
            if file.suffix != ".parquet":
                file.unlink()  # checksums of Hadoop's local file system
                continue
            address = unquote(file.parent.parent.name.partition("=")[2])
            counts[Part(address, dead)] += pq.read_metadata(file).num_rows
            sync(file)
        sync(Path(folder))
    return counts
