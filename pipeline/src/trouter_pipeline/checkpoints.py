"""Checkpoints of Spark's streams: the name under which a stream commits its batches, and how far it has come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from trouter.records.disk import sync

#: What stands for a source of which a batch has nothing.
_NO_OFFSET: Final = b"-"


class NoCheckpoint(Exception):
    """A folder is not one of Spark's checkpoints."""


def query_of(checkpoint: Path) -> str:
    """Return Spark's id of the query whose checkpoint this is; another checkpoint has another one. NoCheckpoint."""
    path = checkpoint / "metadata"
    try:
        return str(msgspec.json.decode(path.read_bytes().strip())["id"])
    except FileNotFoundError as error:
        raise NoCheckpoint(f"{path} is no checkpoint of Spark's: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise NoCheckpoint(f"{path} is no checkpoint of Spark's: {error}") from None


def is_begun(checkpoint: Path) -> bool:
    """Return whether a query has begun in a folder."""
    return (checkpoint / "metadata").exists()


class Torn(Exception):
    """A planned batch of a checkpoint cannot be read; ``number`` is that of the batch, and the text says why."""

    def __init__(self, path: Path, number: int) -> None:
        super().__init__(f"{path} is not whole: the power failed, or the disk was full, while Spark wrote it")
        self.number = number


def position_of(checkpoint: Path) -> dict[str, int]:
    """Return the offset that a stream of one source has come to, as ``shards`` has it; empty before its first batch.

    Torn if a planned batch cannot be read, which Spark's own error does not name.
    """
    done = max(_numbers(checkpoint / "commits"), default=-1)
    planned = {number: _offset(checkpoint / f"offsets/{number}", number) for number in _numbers(checkpoint / "offsets")}
    return planned.get(done, {})


def check_whole(checkpoint: Path) -> None:
    """Raise Torn if a planned batch cannot be read, whatever its sources are."""
    for number in _numbers(checkpoint / "offsets"):
        path = checkpoint / f"offsets/{number}"
        offsets = path.read_bytes().split(b"\n")[2:]
        try:
            for offset in offsets or (b"",):
                if offset != _NO_OFFSET:
                    msgspec.json.decode(offset)
        except ValueError:
            raise Torn(path, number) from None


def settled(checkpoint: Path) -> dict[str, int]:
    """Return `position_of` once the disk has it, for which Spark does not wait; Torn, OSError."""
    position = position_of(checkpoint)
    if position:
        number = str(max(_numbers(checkpoint / "commits")))
        for folder in (checkpoint / "offsets", checkpoint / "commits"):
            sync(folder / number)
            sync(folder)
    return position


def planned_of(checkpoint: Path, number: int) -> dict[str, int]:
    """Return the offset at which a planned batch ends, as ``shards`` has it; Torn, FileNotFoundError."""
    return _offset(checkpoint / f"offsets/{number}", number)


def _numbers(folder: Path) -> Iterator[int]:
    """Yield the numbers of the batches in a folder, of which Spark keeps the last hundred or so."""
    if folder.is_dir():
        yield from (int(each.name) for each in folder.iterdir() if each.name.isdecimal())


def _offset(path: Path, number: int) -> dict[str, int]:
    try:
        offset = path.read_bytes().split(b"\n")[2]  # behind the version and the facts of the batch
        return msgspec.json.decode(offset, type=dict[str, int])
    except (IndexError, ValueError):
        raise Torn(path, number) from None
