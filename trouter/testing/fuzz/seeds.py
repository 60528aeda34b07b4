"""The seeds of a target: an archive, and a folder beside it with new seeds and failing inputs until they are packed."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Final

#: The time of every member, so that equal seeds make equal archives: the earliest that the format knows.
_TIME: Final = (1980, 1, 1, 0, 0, 0)


def archive_of(folder: Path) -> Path:
    """Return the path of the archive that belongs to a folder of seeds."""
    return folder.with_name(f"{folder.name}.zip")


def seeds_in(folder: Path) -> dict[str, bytes]:
    """Return the seeds in a folder and in its archive by name, sorted; {} without both; OSError, BadZipFile.

    A file of the folder replaces the archive's of its name.
    """
    found: dict[str, bytes] = {}
    if archive_of(folder).is_file():
        with zipfile.ZipFile(archive_of(folder)) as archive:
            found = {name: archive.read(name) for name in archive.namelist()}
    if folder.is_dir():
        found |= {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    return dict(sorted(found.items()))


def pack_seeds(folder: Path) -> int:
    """Move the files of a folder of seeds into its archive, and return their number; OSError, BadZipFile.

    The archive depends on names and contents of the seeds only.
    """
    loose = [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    if not loose:
        return 0
    seeds = seeds_in(folder)
    written = archive_of(folder).with_suffix(".new")
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in seeds.items():
            member = zipfile.ZipInfo(name, _TIME)
            member.create_system, member.external_attr = 3, 0o644 << 16  # as on Unix, wherever it is packed
            archive.writestr(member, data, zipfile.ZIP_DEFLATED, 9)
    written.replace(archive_of(folder))
    for path in loose:
        path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()
    return len(loose)


def crash_path(folder: Path, data: bytes) -> Path:
    """Return the path for a failing input; its bytes determine the name."""
    return folder / f"crash-{hashlib.sha256(data).hexdigest()[:16]}"
