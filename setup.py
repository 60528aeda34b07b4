"""Build the compiled twin of the hot modules; pyproject.toml has everything else about the project.

`trouter/_compiling.py` says how, and by which switches. The build installs the manual's pages if `make man` has written
them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from trouter._compiling import Distribution, manual_pages, setup_arguments  # noqa: E402 - from these sources, not from installed ones


def unit() -> list[tuple[str, list[str]]]:
    """Return the units for systemd and their user, by the folder that they are installed in."""
    names = ("trouter.service", "trouter@.service", "trouter.sysusers")
    return [("share/trouter", [f"packaging/{name}" for name in names])]


setup(data_files=manual_pages(ROOT) + unit(), **setup_arguments(Distribution(ROOT, "trouter")))
