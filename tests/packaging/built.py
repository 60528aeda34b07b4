"""A wheel built from the sdist, as on a site without Node.js, with the modules that are compiled already."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.routers import ROOT
from trouter import _twin

_BUILD: Final = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"


class Built(NamedTuple):
    sdist: Path
    wheel: Path


def run(*words: str | Path, cwd: Path = ROOT, environment: Mapping[str, str] | None = None) -> str:
    """Run a command to its end and return its output; it must exit with 0."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-5000:]
    return done.stdout


def tool(name: str) -> Path:
    """Return the program that `make packaging-system` installs, or one on the path; without one, skip the test."""
    found = shutil.which(name, path=f"{ROOT / 'build' / 'packaging' / 'bin'}:{os.environ['PATH']}")
    if found is None:
        pytest.skip(f"{name} is not here; make packaging-system installs it")
    return Path(found)


def build(folder: Path) -> Built:
    """Build the sdist and the wheel in ``folder``, with the man pages that `make wheel` writes before."""
    run(sys.executable, "-m", "manual.man", ROOT / "man")
    pure = {**os.environ, "TROUTER_PURE": "1"}
    sdist = folder / run(sys.executable, "-c", _BUILD, "build_sdist", folder, environment=pure).split()[-1]
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    source = folder / sdist.name.removesuffix(".tar.gz")
    _copy_compiled_modules(source)
    wheel = folder / run(sys.executable, "-c", _BUILD, "build_wheel", folder, cwd=source).split()[-1]
    return Built(sdist, wheel)


def _copy_compiled_modules(source: Path) -> None:
    """Copy the output of `make build`, newer than ``source``, so that no module is compiled a second time."""
    generated = ROOT / "build" / "cython"
    if _twin.PURE or not generated.is_dir():
        return
    shutil.copytree(generated, source / "build" / "cython", copy_function=shutil.copyfile)
    library = source / "build" / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    for module in (ROOT / "trouter").rglob("*.so"):
        target = library / module.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(module, target)
