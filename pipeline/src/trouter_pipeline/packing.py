"""One file with what a Spark worker must have of trouter, for Spark to ship.

The file is a zip archive of the packages `trouter` and `trouter_pipeline` with their compiled modules, and of what they
import on a worker. Spark unpacks it there as `#FOLDER` of `spark.archives` says, and `spark.executorEnv.PYTHONPATH`
names that folder. Spark's `--py-files` imports from an archive without unpacking it, which no compiled module allows;
so for that there is an archive with only our sources, and workers must have msgspec and trio.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path
from typing import Final

#: Our packages, and the distributions that they import on a worker; what these need comes too.
PACKAGES: Final = ("trouter", "trouter_pipeline")
IMPORTED: Final = ("isal", "msgspec", "trio")
#: The folder on a worker. It has no name of a Python package, because it is on the path of imports.
FOLDER: Final = "trouter-worker"
_LEFT_OUT: Final = frozenset({"__pycache__", "console"})
_SUFFIXES_LEFT_OUT: Final = (".pyc", ".pxd", ".pyi", ".c")


class NotPacked(Exception):
    """Something to be packed is not installed."""


def pack(file: Path, others: Iterable[str] = ()) -> int:
    """Write the archive, with further distributions and what they need; return its bytes. NotPacked, OSError."""
    found = _with_needs([*IMPORTED, *others])
    if absent := [name for name in others if _normal(name) not in found]:
        raise NotPacked(f"{', '.join(absent)}: not installed here, so it cannot be packed")
    return _write(file, chain(_ours(), *map(_files_of, found.values())))


def pack_sources(file: Path) -> int:
    """Write only the sources of our packages, which Python imports from the archive; return its bytes. OSError."""
    return _write(file, ((path, name) for path, name in _ours() if path.suffix == ".py"))


def _write(file: Path, contents: Iterable[tuple[Path, str]]) -> int:
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, name in contents:
                archive.write(path, name)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    return file.stat().st_size


def settings(file: Path) -> dict[str, str]:
    """Return the settings of Spark that ship the archive."""
    return {"spark.archives": f"{file}#{FOLDER}", "spark.executorEnv.PYTHONPATH": FOLDER}


def _ours() -> Iterator[tuple[Path, str]]:
    for package in PACKAGES:
        root = Path(import_module(package).__path__[0])
        for path in sorted(root.rglob("*")):
            relative = path.relative_to(root.parent)
            if path.is_file() and not _LEFT_OUT & set(relative.parts) and path.suffix not in _SUFFIXES_LEFT_OUT:
                yield path, str(relative)


def _files_of(found: Distribution) -> Iterator[tuple[Path, str]]:
    for file in found.files or ():
        if ".." in file.parts or _LEFT_OUT & set(file.parts) or file.suffix in _SUFFIXES_LEFT_OUT:
            continue
        path = Path(str(found.locate_file(file)))
        if path.is_file():
            yield path, str(file)


def _with_needs(names: Sequence[str]) -> dict[str, Distribution]:
    """Return the installed distributions of these names and of all that they need."""
    found: dict[str, Distribution] = {}
    wanted = list(names)
    while wanted:
        name = _normal(wanted.pop())
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:  # a need of another platform or version, or of none here
            continue
        wanted += [each for each in found[name].requires or () if "extra ==" not in each]
    return found


def _normal(requirement: str) -> str:
    """Return the name of a distribution in a requirement, as it is compared."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0]).lower()
