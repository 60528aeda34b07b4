"""Checkpoints of Spark's streams: the name under which a stream commits its batches."""

from __future__ import annotations

from pathlib import Path

import msgspec


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
