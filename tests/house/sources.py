"""The project's own files, as the house tests read them."""

from __future__ import annotations

import ast
import re
import subprocess
import tokenize
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from trouter._c_types import MARK
from trouter._compiling import distributions

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "trouter"
#: The other distribution: the folder of its pyproject.toml, and its package.
PIPELINE = ROOT / "pipeline"
PIPELINE_PACKAGE = PIPELINE / "src" / "trouter_pipeline"
PACKAGES = (PACKAGE, PIPELINE_PACKAGE)


def project(folder: Path = ROOT) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def compiled_modules(folder: Path = ROOT) -> list[str]:
    """Return the modules that a distribution lists as compiled."""
    listed: list[str] = project(folder)["tool"]["trouter"]["compiled"]
    return listed


@cache
def tracked_files() -> list[Path]:
    """Return every tracked file of the project; every file of the work tree where there is no repository."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode == 0:
        return [path for name in listing.stdout.split("\0") if name and (path := ROOT / name).is_file()]
    skipped = {".venv", "build", "node_modules", ".git"}
    return [path for path in ROOT.rglob("*") if path.is_file() and not skipped & set(path.relative_to(ROOT).parts)]


def module_of(path: Path) -> str:
    base = PIPELINE_PACKAGE.parent if path.is_relative_to(PIPELINE_PACKAGE) else ROOT
    parts = path.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def source_of(module: str) -> Path:
    """Return where the source of a module of either package stands."""
    base = PIPELINE_PACKAGE.parent if module.startswith(PIPELINE_PACKAGE.name) else ROOT
    return base.joinpath(*module.split(".")).with_suffix(".py")


@cache
def c_types() -> dict[Path, str]:
    """Return the C types of modules, by the path of their file: by hand, and as the build would write them now."""
    files = [path for package in PACKAGES for path in package.rglob("*.pxd") if path.stem != "__init__"]
    by_hand = {path: text for path in files if not (text := path.read_text(encoding="utf-8")).startswith(MARK)}
    return by_hand | {path: text for each in distributions() for path, text in each.types().items()}


def types_of(source: Path) -> str:
    """Return the C types of a source; "" for one that is not compiled."""
    return c_types().get(source.with_suffix(".pxd"), "")


def named(path: Path) -> str:
    """Return the path by which a failure names a file."""
    return str(path.relative_to(ROOT))


def names_in(path: Path, pattern: re.Pattern[str]) -> set[str]:
    """Return the names in a source that match the pattern as a whole, without words of comments and texts."""
    matching = {word for word in words_in(path) if pattern.fullmatch(word)}
    return matching & tokens_in(path) if matching else matching


@cache
def words_in(path: Path) -> frozenset[str]:
    """Return all words of a source, which takes a hundredth of the time of its tokens."""
    return frozenset(re.findall(r"\w+", path.read_text(encoding="utf-8")))


@cache
def tokens_in(path: Path) -> frozenset[str]:
    """Return the names and keywords of a source."""
    with tokenize.open(path) as source:
        tokens = tokenize.generate_tokens(source.readline)
        return frozenset(token.string for token in tokens if token.type == tokenize.NAME)


@cache
def imported_by(path: Path) -> frozenset[str]:
    """Return the modules that a source or a .pxd imports, by absolute name; of `from a import b` b, if it is one."""
    if path.suffix == ".pxd":
        return frozenset(cimported(c_types()[path]))
    return frozenset(_imported(ast.parse(path.read_text(encoding="utf-8")), path))


def _imported(tree: ast.AST, path: Path) -> set[str]:
    names: set[str] = set()
    package = module_of(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            names |= {name if _is_module(name := f"{source}.{alias.name}") else source for alias in node.names}
    return names


@cache
def _is_module(name: str) -> bool:
    places = [base.joinpath(*name.split(".")) for base in (ROOT, PIPELINE_PACKAGE.parent)]
    return any(place.is_dir() or place.with_suffix(".py").is_file() for place in places)


def cimported(text: str) -> set[str]:
    """Return what a file of types imports, without Cython itself."""
    return {match[1] for match in re.finditer(r"^\s*(?:from|cimport)\s+([\w.]+)", text, re.MULTILINE)} - {"cython"}
