"""Writes files whole or not at all, with their final mode from the start."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


def create(path: Path, data: bytes, mode: int) -> None:
    """Write a new file of this mode; FileExistsError if the name is taken, OSError."""
    _write(path, data, mode, None)


def replace(path: Path, data: bytes, mode: int, like: os.stat_result | None = None) -> None:
    """Put a new file in the place of ``path``, in one step; on failure ``path`` stays as it is, OSError.

    mode: of the file, unless ``like`` gives it the mode and, as far as this user may, the owner of another.
    """
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        _write(fresh, data, mode, like)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _write(path: Path, data: bytes, mode: int, like: os.stat_result | None) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(number, "wb") as file:
        if like is not None:
            with suppress(PermissionError):  # only root may
                os.fchown(number, like.st_uid, like.st_gid)
        os.fchmod(number, mode if like is None else stat.S_IMODE(like.st_mode))
        file.write(data)
        file.flush()
        os.fsync(number)
