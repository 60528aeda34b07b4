"""Build the compiled twin of the hot modules; pyproject.toml has everything else about the project.

`[tool.trouter] compiled` lists the modules. A compilation error fails the build, because a router that
runs interpreted without notice is only slow. Beside the compiled modules the build writes `compiled.sha256`, the hashes
of the sources that they were made from: the tests refuse modules that are older than their sources (tests/compiled.py).
The build installs the manual's pages if `make man` has written them.
Two switches:
TROUTER_PURE=1              build nothing: the interpreted twin only
TROUTER_ALLOW_PURE_BUILD=1  if a module fails to compile, print a warning and install the interpreted twin
"""

from __future__ import annotations

import hashlib
import os
import sys
import tomllib
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent


def settings() -> dict[str, list[str]]:
    """Return `[tool.trouter]` of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, list[str]] = project["tool"]["trouter"]
    return found


def compiled_sources() -> list[tuple[str, str]]:
    """Return (module, source path) of every listed module; raise FileNotFoundError for one without a source."""
    sources = [(module, module.replace(".", "/") + ".py") for module in settings()["compiled"]]
    if missing := [module for module, path in sources if not (ROOT / path).is_file()]:
        raise FileNotFoundError(f"listed as compiled in pyproject.toml, but absent: {', '.join(missing)}")
    return sources


def hashes() -> str:
    """Return the hashes of the sources that compiled modules are made from, a line each, as `sha256sum` prints them.

    Types of any module may be compiled into any other, so these are all files with types, and the listed modules.
    """
    sources = {path for _, path in compiled_sources()} | {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "trouter").rglob("*.pxd")
    }
    return "".join(f"{hashlib.sha256((ROOT / path).read_bytes()).hexdigest()}  {path}\n" for path in sorted(sources))


def extensions() -> list[Extension]:
    """Return the listed modules, translated to C."""
    if os.environ.get("TROUTER_PURE"):
        return []
    from Cython.Build import cythonize  # noqa: PLC0415  # not needed, so not required, for the interpreted twin

    unchecked = settings()["unchecked"]
    translated: list[Extension] = []
    for checks in (True, False):
        translated += cythonize(
            [
                # no debugger reads the generated C, and a build without symbols takes three quarters of the time
                Extension(module, [path], extra_compile_args=["-g0"])
                for module, path in compiled_sources()
                if (module not in unchecked) is checks
            ],
            build_dir="build/cython",
            nthreads=os.cpu_count() or 1,
            compiler_directives={
                "annotation_typing": False,
                "language_level": 3,
                "boundscheck": checks,
                "wraparound": checks,
            },
        )
    return translated


def unit() -> list[tuple[str, list[str]]]:
    """Return the unit for systemd and its user, by the folder that they are installed in."""
    return [("share/trouter", ["packaging/trouter.service", "packaging/trouter.sysusers"])]


def manual_pages() -> list[tuple[str, list[str]]]:
    """Return the pages that `make man` wrote, by the folder that they are installed in; empty before `make man`."""
    return [
        (f"share/man/{folder.name}", [str(page.relative_to(ROOT)) for page in sorted(folder.iterdir())])
        for folder in sorted((ROOT / "man").glob("man?"))
    ]


class BuildAllOrNone(build_ext):  # type: ignore[misc]  # setuptools ships no types
    """Compile in parallel; with TROUTER_ALLOW_PURE_BUILD=1 one failure means the interpreted twin for all."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        record = Path(self.get_ext_fullpath("trouter.compiled")).with_name("compiled.sha256")
        record.unlink(missing_ok=True)
        try:
            super().run()
            if wanted := {Path(self.get_ext_fullpath(extension.name)) for extension in self.extensions}:
                found = {path for suffix in EXTENSION_SUFFIXES for path in record.parent.rglob(f"*{suffix}")}
                for left in found - wanted:
                    left.unlink()  # of a module that is not compiled any more, perhaps not even there
                record.write_text(HASHES, encoding="ascii")
        except Exception as failure:
            if not tolerates(failure):
                raise
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []


def tolerates(failure: Exception) -> bool:
    """Return whether the builder prefers the interpreted twin to a failed build; remove compiled modules then."""
    if not os.environ.get("TROUTER_ALLOW_PURE_BUILD"):
        return False
    print(f"trouter: NOT COMPILED, the interpreted twin will run: {failure}", file=sys.stderr)  # noqa: T201
    for _, path in compiled_sources():
        source = ROOT / path
        for suffix in EXTENSION_SUFFIXES:
            source.with_name(source.stem + suffix).unlink(missing_ok=True)
    return True


#: From before the build: a source that changes meanwhile counts as changed.
HASHES = hashes()

try:
    modules = extensions()
except Exception as failure:
    if not tolerates(failure):
        raise
    modules = []

setup(ext_modules=modules, data_files=manual_pages() + unit(), cmdclass={"build_ext": BuildAllOrNone})
