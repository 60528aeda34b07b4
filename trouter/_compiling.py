"""Build the compiled twin of a distribution's hot modules; the setup.py of each distribution calls this module.

`[tool.trouter]` of its pyproject.toml lists them: `compiled`, of these those that are `unchecked`, because they check
their indices themselves, and `freelists`, classes for which memory is kept. The build writes their C types from their
annotations first (`trouter/_c_types.py`). A compilation error fails the build, because a program that runs interpreted
without notice is only slow. Beside the compiled modules the build writes `compiled.sha256`, the hashes of the sources
that they were made from: the tests refuse modules that are older than their sources (tests/compiled.py).
Switches:
TROUTER_PURE=1              build nothing: the interpreted twin only
TROUTER_ALLOW_PURE_BUILD=1  if a module fails to compile, print a warning and install the interpreted twin
TROUTER_REUSE=0             deliveries do not reuse each other's memory (`trouter/engine/reuse.py`), for sanitizers; a
                            module that is compiled already stays as it is, so give such a build a folder of its own
"""

from __future__ import annotations

import hashlib
import os
import sys
import tomllib
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, Final

from trouter import _c_types

#: The package of this module, whose types the modules of other distributions use.
OURS: Final = Path(__file__).resolve().parent
#: The file in the folder of a package that has the hashes of the sources of its compiled modules.
RECORD: Final = "compiled.sha256"
#: The folder of the C sources, and the file there that has the hashes of the types that they were made with.
TRANSLATED: Final = Path("build/cython")
TYPES: Final = TRANSLATED / "types.sha256"


class Distribution:
    """The sources of a distribution: ``package`` in the folder ``within``, relative to that of its pyproject.toml."""

    def __init__(self, root: Path, package: str, within: str = ".") -> None:
        self.root = root
        self.package = package
        self.within = within
        settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["trouter"]
        self.compiled: list[str] = settings["compiled"]
        self.unchecked: list[str] = settings.get("unchecked", [])
        self.freelists: dict[str, int] = settings.get("freelists", {})
        if missing := [module for module, path in self.sources() if not (root / path).is_file()]:
            raise FileNotFoundError(f"listed as compiled in pyproject.toml, but absent: {', '.join(missing)}")

    def sources(self) -> list[tuple[str, str]]:
        """Return (module, path of its source from the root) of every listed module."""
        return [(name, Path(self.within, *name.split(".")).with_suffix(".py").as_posix()) for name in self.compiled]

    def types(self) -> dict[Path, str]:
        """Return the C types of the listed modules that the build writes, by the path of the file; TypesError."""
        package = self.root / self.within / self.package
        return _c_types.texts(
            {module: self.root / path for module, path in self.sources()},
            package,
            [] if package.resolve() == OURS else [OURS],
            self.freelists,
        )

    def write_types(self) -> None:
        """Write the C types of the listed modules beside them, and delete those of modules that are listed no more.

        A file that would not change is left alone.
        """
        types = self.types()
        for path, text in types.items():
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
        for path in _c_types.left_behind(self.root / self.within / self.package, types):
            path.unlink()

    def hashes(self) -> str:
        """Return the hashes of the sources of compiled modules, a line each, as `sha256sum` prints them.

        Types of any module may be compiled into any other, so these are all files with types, those of the router
        included, and the listed modules. Names begin with the package.
        """
        home = self.root / self.within
        packages = {OURS.name: OURS.parent, self.package: home}
        files = {path.relative_to(self.within).as_posix(): self.root / path for path in self._listed()}
        for package, folder in packages.items():
            files |= {path.relative_to(folder).as_posix(): path for path in (folder / package).rglob("*.pxd")}
        lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n" for name, path in sorted(files.items())]
        return "".join(lines)

    def hashes_of_inlined(self) -> str:
        """Return the hashes of the `.pxd` files whose functions are inlined into the modules that cimport them."""
        sources = {path.removesuffix(".py") for _, path in self.sources()}
        lines = self.hashes().splitlines(keepends=True)
        return "".join(
            line
            for line in lines
            if (name := line.rstrip().split("  ")[1]).endswith(".pxd")
            and Path(self.within, name).with_suffix("").as_posix() not in sources
        )

    def _listed(self) -> Iterator[Path]:
        return (Path(path) for _, path in self.sources())


def distributions() -> tuple[Distribution, Distribution]:
    """Return the router and its pipeline, in a checkout."""
    return Distribution(OURS.parent, "trouter"), Distribution(OURS.parent / "pipeline", "trouter_pipeline", "src")


def setup_arguments(distribution: Distribution) -> dict[str, Any]:
    """Return what setuptools' ``setup`` needs to build the distribution's compiled modules."""
    distribution.write_types()
    recorded = distribution.hashes()  # from before the build: a source that changes meanwhile counts as changed
    try:
        modules = _extensions(distribution)
    except Exception as failure:
        if not _tolerates(failure, distribution):
            raise
        modules = []
    return {"ext_modules": modules, "cmdclass": {"build_ext": _command(distribution, recorded)}}


def manual_pages(root: Path) -> list[tuple[str, list[str]]]:
    """Return the pages that `make man` wrote, by the folder that they are installed in; empty before `make man`."""
    return [
        (f"share/man/{folder.name}", [str(page.relative_to(root)) for page in sorted(folder.iterdir())])
        for folder in sorted((root / "man").glob("man?"))
    ]


def _extensions(distribution: Distribution) -> list[Any]:
    """Return the listed modules, translated to C."""
    if os.environ.get("TROUTER_PURE"):
        return []
    from Cython.Build import cythonize  # noqa: PLC0415  # not needed, so not required, for the interpreted twin
    from setuptools import Extension  # noqa: PLC0415  # no part of the router that runs

    # no debugger reads the generated C, and a build without symbols takes three quarters of the time
    symbols = [] if "-g" in os.environ.get("CFLAGS", "") else ["-g0"]
    macros = [("TROUTER_NO_REUSE", "1")] if os.environ.get("TROUTER_REUSE") == "0" else []
    # Cython does not see that a module depends on the types of one that it cimports whole (`from trouter.wire cimport
    # octets`), so a change of any such file translates everything anew.
    types = distribution.hashes_of_inlined()
    changed = TRANSLATED.is_dir() and (not TYPES.is_file() or TYPES.read_text(encoding="ascii") != types)
    translated: list[Any] = []
    for checks in (True, False):
        translated += cythonize(  # type: ignore[no-untyped-call]  # it has no types
            [
                Extension(module, [path], extra_compile_args=symbols, define_macros=macros)
                for module, path in distribution.sources()
                if (module not in distribution.unchecked) is checks
            ],
            include_path=[distribution.within, str(OURS.parent)],
            build_dir=str(TRANSLATED),
            force=changed,
            nthreads=os.cpu_count() or 1,
            compiler_directives={
                "annotation_typing": False,
                "language_level": 3,
                "boundscheck": checks,
                "wraparound": checks,
            },
        )
    if translated:
        TYPES.write_text(types, encoding="ascii")
    return translated


def _command(distribution: Distribution, recorded: str) -> type[Any]:
    """Return the command ``build_ext`` that builds all modules in parallel, or none."""
    from setuptools.command.build_ext import build_ext  # noqa: PLC0415  # no part of the router that runs

    class BuildAllOrNone(build_ext):  # type: ignore[misc]  # setuptools ships no types
        parallel: int | None
        extensions: list[Any]

        def finalize_options(self) -> None:
            super().finalize_options()
            self.parallel = self.parallel or os.cpu_count()

        def run(self) -> None:
            record = Path(self.get_ext_fullpath(f"{distribution.package}.compiled")).with_name(RECORD)
            record.unlink(missing_ok=True)
            try:
                super().run()
                if wanted := {Path(self.get_ext_fullpath(extension.name)) for extension in self.extensions}:
                    found = {path for suffix in EXTENSION_SUFFIXES for path in record.parent.rglob(f"*{suffix}")}
                    for left in found - wanted:
                        left.unlink()  # of a module that is not compiled any more, perhaps not even there
                    record.write_text(recorded, encoding="ascii")
            except Exception as failure:
                if not _tolerates(failure, distribution):
                    raise
                for extension in self.extensions:
                    Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
                self.extensions = []

    return BuildAllOrNone


def _tolerates(failure: Exception, distribution: Distribution) -> bool:
    """Return whether the builder prefers the interpreted twin to a failed build; remove compiled modules then."""
    if not os.environ.get("TROUTER_ALLOW_PURE_BUILD"):
        return False
    name = distribution.package
    print(f"{name}: NOT COMPILED, the interpreted twin will run: {failure}", file=sys.stderr)  # noqa: T201
    for _, path in distribution.sources():
        source = distribution.root / path
        for suffix in EXTENSION_SUFFIXES:
            source.with_name(source.stem + suffix).unlink(missing_ok=True)
    return True
