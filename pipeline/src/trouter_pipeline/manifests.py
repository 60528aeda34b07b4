"""Reads manifests: files with the contents of a folder, each replaced as a whole by a rename."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, TypeVar

import msgspec


class Versioned(Protocol):
    """The contents of a manifest: a msgspec.Struct."""

    version: int


Contents = TypeVar("Contents", bound=Versioned)


def read_manifest(
    path: Path, shape: type[Contents], versions: tuple[int, ...], what: str, fault: type[Exception]
) -> Contents | None:
    """Return the manifest of ``what``, None if there is none; ``fault`` if it is unusable, OSError."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        manifest = msgspec.json.decode(content, type=shape)
    except ValueError as error:
        raise fault(f"{path}: this is not a manifest of {what}: {error}") from None
    if manifest.version not in versions:
        raise fault(f"{path}: is of version {manifest.version}, and this program reads version {versions[-1]}")
    return manifest
