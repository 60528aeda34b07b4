"""Choose between the two twins of the hot modules, and say which one runs.

A hot module `x.py` has its C types in `x.pxd` beside it, which the build writes, and may stand there compiled as well.
Python prefers the compiled file; TROUTER_PURE=1 prefers the source. There is no fallback from one to the other: a
module that fails to compile fails the build, and a compiled module that fails to load fails the import.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.machinery import SOURCE_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader
from pathlib import Path

PURE = bool(os.environ.get("TROUTER_PURE"))


#: Modules whose compiled body stands in their `.pxd` and is inlined into others, and one that passes on the types of
#: others: nothing of them is built.
INLINED = frozenset(
    {
        "trouter.client.sink",
        "trouter.core.deliveries",
        "trouter.engine.deliveries",
        "trouter.engine.reuse",
        "trouter.net.atomics",
        "trouter.wire.octets",
    }
)


def select(path: Iterable[str]) -> None:
    """Make imports from a package's `__path__` take the source twin when TROUTER_PURE is set.

    To be called by the `__init__` of each package with compiled modules, before it imports any of them. A package in
    a zip archive has none.
    """
    if PURE:
        for entry in filter(os.path.isdir, path):
            sys.path_importer_cache[entry] = FileFinder(entry, (SourceFileLoader, SOURCE_SUFFIXES))


def is_compiled(name: str) -> bool:
    """Return whether the module `name`, imported if need be, runs compiled."""
    spec = import_module(name).__spec__
    return spec is not None and isinstance(spec.loader, ExtensionFileLoader)


def hot_modules() -> list[str]:
    """Return every module of this installation that has C types beside it, so may be compiled."""
    root = Path(__file__).parent
    typed = (path.relative_to(root.parent) for path in root.rglob("*.pxd") if path.stem != "__init__")
    return sorted({".".join(path.with_suffix("").parts) for path in typed} - INLINED)


def running() -> str:
    """Return `compiled`, `interpreted`, or the mixture, named, which only a broken build gives."""
    hot = hot_modules()
    compiled = [name for name in hot if is_compiled(name)]
    if not compiled:
        return "interpreted"
    if len(compiled) == len(hot):
        return "compiled"
    return f"mixed: interpreted are {', '.join(sorted(set(hot) - set(compiled)))}"
