"""A Spark source for the file of `pipeline.bench.theirs`, as a user would write it with python-qpid-proton.

It reads the frames of the file by offset, decodes each message with ``proton.Message``, and returns a tuple of the
fields that most users need.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from proton import Message
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

_GUARD = struct.Struct(">II")
_HEAD = struct.Struct(">QQIHB")
#: Maximum bytes of a batch; a task's part of it has at most half.
_BATCH_BYTES = 64 << 20
_TASKS = 2


class Octets(InputPartition):
    """A range of whole frames, by offset."""

    def __init__(self, begin: int, end: int) -> None:
        self.begin = begin
        self.end = end


class FramesSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "frames"

    def schema(self) -> str:
        return (
            "seq bigint, ingest_time timestamp, message_id string, address string, subject string, "
            "correlation_id string, content_type string, properties map<string,string>, body binary, error string"
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return FramesReader(Path(str(self.options["file"])))


class FramesReader(DataSourceStreamReader):
    def __init__(self, file: Path) -> None:
        self._file = file
        self._ends = [0]

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"at": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        """Return the end of the last whole frame; on the way, store where a batch may be cut."""
        at = self._ends[-1]
        if self._file.exists():
            with self._file.open("rb") as file:
                file.seek(at)
                data = file.read(_BATCH_BYTES)
            inside = 0
            while inside + _GUARD.size <= len(data):
                end = inside + _GUARD.size + _GUARD.unpack_from(data, inside)[0]
                if end > len(data):
                    break
                inside = end
                self._ends.append(at + inside)
        return {"at": self._ends[-1]}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        ends = [each for each in self._ends if start["at"] < each <= end["at"]]
        size = -(-len(ends) // _TASKS)
        cuts = [start["at"], *ends[size - 1 :: size]]
        if cuts[-1] != end["at"]:
            cuts.append(end["at"])
        return [Octets(begin, until) for begin, until in pairwise(cuts)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, Octets)
        with self._file.open("rb") as file:
            file.seek(partition.begin)
            data = memoryview(file.read(partition.end - partition.begin))
        message: Any = Message()
        at = 0
        while at < len(data):
            length, crc = _GUARD.unpack_from(data, at)
            body = data[at + _GUARD.size : at + _GUARD.size + length]
            if zlib.crc32(body) != crc:
                raise ValueError(f"byte {partition.begin + at}: a wrong checksum")
            seq, ingest_us, _, _, _ = _HEAD.unpack_from(body)
            message.decode(bytes(body[_HEAD.size :]))
            yield (
                seq,
                datetime.fromtimestamp(ingest_us / 1e6, UTC),
                message.id,
                message.address,
                message.subject,
                message.correlation_id,
                message.content_type,
                {str(name): str(value) for name, value in (message.properties or {}).items()},
                message.body if isinstance(message.body, bytes) else str(message.body).encode(),
                None,
            )
            at += _GUARD.size + length

    def commit(self, end: dict[str, int]) -> None:
        self._ends = [each for each in self._ends if each >= end["at"]]
