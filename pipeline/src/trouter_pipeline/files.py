"""Folders, files and locks of the pipeline on this machine's file systems."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trouter.records.disk import FileHeld, lock_file, place_file, sync


class TableBusy(Exception):
    """Another process has changed the same table meanwhile, or is changing it."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a file for the block; the end of the process releases it. TableBusy, OSError."""
    try:
        descriptor = lock_file(path)
    except FileHeld as held:
        raise TableBusy(f"{path.parent} is written by process {held.holder or '?'} at this moment") from None
    try:
        yield
    finally:
        os.close(descriptor)


def replace(path: Path, octets: bytes) -> None:
    """Replace the contents of ``path`` atomically and durably; OSError."""
    place_file(path, octets, mode=0o666, part=path.with_name(path.name + ".tmp"))


def make_folder(path: Path) -> None:
    """Create a folder and its parents, each durable before its contents; OSError."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)
