"""Whether the compiled modules were made from the sources beside them; otherwise the tests would test old code."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

#: Where the build writes the hashes of the sources that it compiled, in the folder of the package.
RECORD = "compiled.sha256"


def stale_anywhere() -> list[str]:
    """Return what is wrong with the compiled modules of the router and of its pipeline; without an import of either."""
    router, pipeline = (_folder_of(name) for name in ("trouter", "trouter_pipeline"))
    return [*stale_modules(router), *stale_modules(pipeline, router)]


def _folder_of(package: str) -> Path:
    found = find_spec(package)
    assert found is not None, f"{package} is not installed"
    assert found.origin is not None
    return Path(found.origin).parent


def stale_modules(package: Path, *used: Path) -> list[str]:
    """Return what is wrong with the compiled modules below a package, a line each; [] if there is none, or none is.

    They have types of the packages ``used``. The hashes are of contents, so the time stamps of a clone, a checkout or a
    wheel do not matter.
    """
    compiled = sorted({path for suffix in EXTENSION_SUFFIXES for path in package.rglob(f"*{suffix}")})
    return [*_problems(package, used, compiled)] if compiled else []


def _problems(package: Path, used: tuple[Path, ...], compiled: list[Path]) -> Iterator[str]:
    record = package / RECORD
    if not record.is_file():
        yield f"{record} is missing: the build did not end"
        return
    recorded = dict(line.split("  ")[::-1] for line in record.read_text(encoding="ascii").splitlines())
    folders = {each.name: each.parent for each in (*used, package)}
    for name, wanted in recorded.items():
        source = folders.get(name.partition("/")[0], package.parent) / name
        if not source.is_file():
            yield f"{name} is compiled and no longer there"
        elif hashlib.sha256(source.read_bytes()).hexdigest() != wanted:
            yield f"{name} has changed since it was compiled"
    for path in compiled:
        source = path.with_name(path.name.partition(".")[0] + ".py").relative_to(package.parent)
        if source.as_posix() not in recorded:
            yield f"{path.relative_to(package.parent)} was left by a build of other sources: remove it"
