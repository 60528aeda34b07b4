"""Build the compiled twin of the pipeline's hot modules; pyproject.toml has everything else about the project.

The types of the router's modules come from the installed `trouter`; so does the way to build (`trouter/_compiling.py`).
The build installs the manual's pages if `make man` has written them.
"""

from __future__ import annotations

from pathlib import Path

from setuptools import setup

from trouter._compiling import Distribution, manual_pages, setup_arguments

ROOT = Path(__file__).resolve().parent

setup(data_files=manual_pages(ROOT), **setup_arguments(Distribution(ROOT, "trouter_pipeline", within="src")))
