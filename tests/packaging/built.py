"""Wheels built from the sdists, as on a site without Node.js, with the modules that are compiled already."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.house.sources import PIPELINE, PIPELINE_PACKAGE, ROOT
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
    """Build the router's sdist and wheel in ``folder``, with the man pages that `make wheel` writes before."""
    return _build(folder, ROOT, ROOT / "trouter")


def build_pipeline(folder: Path) -> Built:
    """Build the sdist and the wheel of the pipeline, with the types of the router that this Python imports."""
    return _build(folder, PIPELINE, PIPELINE_PACKAGE)


def _build(folder: Path, project: Path, package: Path) -> Built:
    run(sys.executable, "-m", "manual.man", ROOT / "man", PIPELINE / "man")
    pure = {**os.environ, "TROUTER_PURE": "1"}
    said = run(sys.executable, "-c", _BUILD, "build_sdist", folder, cwd=project, environment=pure)
    sdist = folder / said.split()[-1]
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    source = folder / sdist.name.removesuffix(".tar.gz")
    _copy_compiled_modules(source, project, package)
    wheel = folder / run(sys.executable, "-c", _BUILD, "build_wheel", folder, cwd=source).split()[-1]
    return Built(sdist, wheel)


def _copy_compiled_modules(source: Path, project: Path, package: Path) -> None:
    """Copy the output of `make build`, newer than ``source``, so that no module is compiled a second time."""
    generated = project / "build" / "cython"
    if _twin.PURE or not generated.is_dir():
        return
    shutil.copytree(generated, source / "build" / "cython", copy_function=shutil.copyfile)
    library = source / "build" / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    for module in package.rglob("*.so"):
        target = library / module.relative_to(package.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(module, target)


class Machine:
    """An environment that has a Python, the wheels installed in it, and packages that this environment lends it."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, symlinks=True)
        self.folder = folder
        self.programs = folder / "bin"
        self.python = self.programs / "python"
        self.packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
        self._environment = {
            "PATH": str(self.programs),
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            **({"TROUTER_PURE": "1"} if _twin.PURE else {}),
        }

    def install(self, wheel: Path) -> None:
        """Install a wheel without its requirements."""
        pip = (sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet", "--no-deps", "--no-index")
        run(*pip, wheel, environment=self._environment)

    def lend(self, names: Iterable[str]) -> None:
        """Lend the distributions of these names."""
        for name in names:
            found = metadata.distribution(name)
            for top in {file.parts[0] for file in found.files or () if file.parts[0] != ".."}:
                if not (self.packages / top).exists():
                    (self.packages / top).symlink_to(Path(str(found.locate_file(top))))

    def run(self, *words: str | Path) -> str:
        """Run a command to its end and return its output; it must exit with 0."""
        return run(*words, cwd=self.folder, environment=self._environment)

    def refused(self, *words: str | Path) -> tuple[int, str]:
        """Run a command that must fail; return its exit status and what it says."""
        done = subprocess.run(
            [str(word) for word in words],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stdout == ""
        return done.returncode, done.stderr


def required_by(name: str) -> set[str]:
    """Return the distributions that one needs here without its extras, directly or through others."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for text in metadata.requires(waiting.pop()) or ():
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                normal = canonicalize_name(wanted.name)
                waiting += [normal] * (normal not in found)
                found.add(normal)
    return found
