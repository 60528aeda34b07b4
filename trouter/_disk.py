"""What the rooms that keep files on disk share."""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Have the disk hold on to a file, or to the names in a folder; OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
