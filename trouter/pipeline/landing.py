"""A table that grows by batches, each of which is there whole or not at all: by the rename of one folder.

    ROOT/tables/NAME/_land.json                                what is landed here, and by which checkpoint
    ROOT/tables/NAME/data/batch=N/address=A/date=D/*.parquet   one micro-batch, never changed
    ROOT/tables/NAME/.staging/                                 what a run has not finished
    ROOT/tables/NAME/LOCK                                      held by the one who lands

A batch that comes again after a crash finds its folder there and is done. So a reader of the files under `data`, in
whatever program, reads every row once; there is no log to know of. Rows that are no good go the same way, into the
table beside, `NAME_dead`.
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
from trouter.pipeline.manifests import read_manifest
from trouter.pipeline.tables import locked, make_folder, replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IDENTITY: Final = "_land.json"
VERSION: Final = 1
#: The column by which rows are parted from those that are no good; it is in no table.
DEAD: Final = "_dead"
DEAD_SUFFIX: Final = "_dead"


class NotLanded(Exception):
    """Rows cannot be landed here; the text names the place and the cure."""


class Identity(msgspec.Struct, omit_defaults=True):
    """What is landed in a table: Spark's id of the checkpoint, and the columns as Spark spells them."""

    version: int
    checkpoint: str
    schema: str
    parameters: dict[str, str]


class Part(NamedTuple):
    """Rows of one source in a batch."""

    address: str
    dead: bool


class Landing:
    """The tables NAME and NAME_dead of one stream. ``held`` while anything is landed."""

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.folder = Path(root) / "tables" / name
        self.graves = Path(root) / "tables" / (name + DEAD_SUFFIX)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the only one who lands here; TableBusy, OSError."""
        for folder in (self.folder, self.graves):
            make_folder(folder / "data")
        with locked(self.folder / "LOCK"):
            shutil.rmtree(self.folder / ".staging", ignore_errors=True)
            yield

    def claim(self, checkpoint: Path, schema: str, parameters: Mapping[str, str]) -> None:
        """Land what this checkpoint tells of, from its first batch or where it was; NotLanded, OSError."""
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
        """What is landed here; None before anything is. NotLanded, OSError."""
        return read_manifest(self.folder / IDENTITY, Identity, (VERSION,), "a landed table", NotLanded)

    def batches(self) -> dict[str, int]:
        """What was landed, by batch, with its number: a batch never changes."""
        return {path.name: int(path.name.partition("=")[2]) for path in (self.folder / "data").glob("batch=*")}

    def land(self, frame: DataFrame, batch: int) -> Counter[Part]:
        """Have the rows of a batch there, once, however often this is called; how many of each source.

        ``frame`` has the columns `address`, `date` and ``DEAD``, and is computed once. OSError, and Spark's.
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
            for dead in (True, False):  # the good rows last: once they are there, so is all of the batch
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
    """The rows of a landed table, each once; or those that were no good. NotLanded, OSError."""
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
    """Have the disk hold what Spark wrote of one table; rows by source."""
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
