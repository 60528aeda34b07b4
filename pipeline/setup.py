"""Build the compiled twin of the pipeline's hot modules; pyproject.toml has everything else about the project.

The types of the router's modules come from the installed `trouter`; so does the way to build (`trouter/_compiling.py`).
"""

from __future__ import annotations

from pathlib import Path

from setuptools import setup

from trouter._compiling import Distribution, setup_arguments

setup(**setup_arguments(Distribution(Path(__file__).resolve().parent, "trouter_pipeline", within="src")))
