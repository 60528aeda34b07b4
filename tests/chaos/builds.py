"""Make a newer build of the router under test."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import trouter
from tests.routers import ROOT

NEWER: Final = f"{trouter.__version__}.post1"
#: Compiled files are not copied: the newer build runs the interpreted twin.
_LEFT_OUT: Final = shutil.ignore_patterns("*.so", "*.c", "__pycache__", "console")


def newer_build(folder: Path) -> Path:
    """Copy the sources with a higher version; return the folder in which `python -m trouter` runs that build."""
    tree = folder / "newer"
    shutil.copytree(ROOT / "trouter", tree / "trouter", ignore=_LEFT_OUT)
    first = tree / "trouter" / "__init__.py"
    first.write_text(first.read_text().replace(f'"{trouter.__version__}"', f'"{NEWER}"'))
    return tree
