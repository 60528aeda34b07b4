"""A fuzz target: what its module declares, and its seeds.

A target is a module with a function ``check(data)``; the first line of its docstring is the invariant that it verifies.
It may name a ``MUTATOR`` (see ``mutation`` and ``structure``) and, in ``COVERS``, the modules whose coverage guides
atheris. Seeds are in an archive named after the module, in the folder ``seeds`` beside it, and new ones in a folder of
the same name.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from trouter.testing.fuzz.hunting import Check
from trouter.testing.fuzz.mutation import Mutator
from trouter.testing.fuzz.seeds import crash_path, seeds_in


@dataclass(frozen=True, slots=True)
class FuzzTarget:
    """One fuzz target; its own seeds are in ``folder`` and in the archive beside it, ``borrowed`` ones elsewhere.

    ``module`` is the name by which a program imports it, with the folder ``place`` on its path.
    """

    name: str
    check: Check
    folder: Path
    mutator: Mutator | None = None
    covers: tuple[str, ...] = ()
    borrowed: tuple[bytes, ...] = ()
    module: str = ""
    place: Path = Path()

    @property
    def inputs(self) -> dict[str, bytes]:
        """Its own seeds and kept crashes, by name."""
        return seeds_in(self.folder)

    @property
    def seeds(self) -> list[bytes]:
        """The bytes of its seeds and kept crashes, and of the borrowed seeds."""
        return [*self.inputs.values(), *self.borrowed]

    def keep(self, data: bytes) -> Path:
        """Store a failing input among the seeds and return its file; OSError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = crash_path(self.folder, data)
        path.write_bytes(data)
        return path


def target_of(module: ModuleType, name: str, seeds: Path, borrowed: Iterable[bytes] = ()) -> FuzzTarget:
    """Return the target that a module defines; AttributeError if it has no ``check``."""
    depth = module.__name__.count(".")
    return FuzzTarget(
        name,
        module.check,
        seeds / name,
        getattr(module, "MUTATOR", None),
        tuple(getattr(module, "COVERS", ())),
        tuple(borrowed),
        module.__name__,
        Path(module.__file__ or "").resolve().parents[depth],
    )


def load_file(path: Path, seeds: Path | None = None) -> FuzzTarget:
    """Return the target in a Python file; OSError, AttributeError, and any exception of its import."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise OSError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return target_of(module, path.stem, seeds or path.parent / "seeds")
