"""Reads the files that say what a folder holds, each replaced whole by a rename."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, TypeVar

import msgspec


class Versioned(Protocol):
    """What a manifest says: a msgspec.Struct."""

    version: int


Says = TypeVar("Says", bound=Versioned)


def read_manifest(
    path: Path, shape: type[Says], versions: tuple[int, ...], what: str, fault: type[Exception]
) -> Says | None:
    """What a manifest of ``what`` says, None where there is none yet; ``fault`` if it cannot be understood, OSError."""
    try:
        octets = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        said = msgspec.json.decode(octets, type=shape)
    except ValueError as error:
        raise fault(f"{path}: this is not a manifest of {what}: {error}") from None
    if said.version not in versions:
        raise fault(f"{path}: is of version {said.version}, and this program reads version {versions[-1]}")
    return said
