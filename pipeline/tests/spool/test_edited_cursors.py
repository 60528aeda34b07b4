"""Files of cursors that were edited: no message is deleted or passed over because of one."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pipeline.tests.spool.support import fill, holds
from trouter_pipeline.spool import NoCursor, Spool, SpoolCorrupt, SpoolReader
from trouter_pipeline.spool.cursors import lags_of
from trouter_pipeline.spool.marks import place_mark

pytestmark = pytest.mark.attack


def beyond(path: Path, position: int) -> None:
    place_mark(path, position)


def write(path: Path, octets: bytes) -> None:
    path.unlink()
    path.write_bytes(octets)


def link(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


#: What is done to a cursor's file, and what a reader says.
EDITS: dict[str, tuple[Callable[[Path], None], type[Exception], str]] = {
    "one beyond the end": (partial(beyond, position=21), SpoolCorrupt, "at message 21, but the spool ends before"),
    "huge": (partial(beyond, position=(1 << 64) - 1), SpoolCorrupt, "remove the cursor and add it again"),
    "cut": (partial(write, octets=b"12345678"), SpoolCorrupt, "a mark has 16 bytes"),
    "empty": (partial(write, octets=b""), SpoolCorrupt, "a mark has 16 bytes"),
    "longer": (partial(write, octets=bytes(17)), SpoolCorrupt, "a mark has 16 bytes"),
    "another number": (partial(write, octets=b"-000000000000005"), SpoolCorrupt, "no valid mark"),
    "a link to nothing": (partial(link, target="nothing"), NoCursor, "no cursor 'tables'"),
    "a link to a device": (partial(link, target="/dev/zero"), OSError, "no regular file"),
    "a pipe": (pipe, OSError, "no regular file"),
}


def made(folder: Path) -> Path:
    """Make a spool of four segments with five messages each; return the file of its cursor."""
    with Spool.open(folder, segment_bytes=500, cursors=["tables"]) as spool:
        for _ in range(4):
            fill(spool, 5)
    return folder / "tables.cursor"


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_cursor_is_an_error_that_names_it(folder: Path, edit: str) -> None:
    change, kind, told = EDITS[edit]
    change(made(folder))
    with pytest.raises(kind, match=told) as refused:
        assert SpoolReader(folder, "tables").begin
    assert "tables" in str(refused.value)


def test_a_cursor_beyond_the_end_has_no_message_deleted(folder: Path) -> None:
    place_mark(made(folder), 1 << 40)
    with Spool.open(folder, segment_bytes=500) as spool:
        assert (spool.consumed, spool.reap(), spool.slowest) == (0, 0, "tables")
        fill(spool, 5)
        assert spool.reap() == 0
    holds(folder, 0, 25)
    assert [(lag.position, lag.messages) for lag in lags_of(folder)] == [(1 << 40, 25)]
