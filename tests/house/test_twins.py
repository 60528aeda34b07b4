"""The compiled modules are the listed ones, each with its types beside it, and the switch between the twins works."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from tests.compiled import stale_modules
from tests.house.sources import (
    PACKAGE,
    PIPELINE,
    ROOT,
    c_types,
    compiled_modules,
    module_of,
    source_of,
    tracked_files,
    types_of,
    words_in,
)
from trouter import _twin

ROUTERS = compiled_modules()
LISTED = ROUTERS + compiled_modules(PIPELINE)
PACKAGES = sorted({module.rpartition(".")[0] for module in LISTED})


def extension_of(module: str) -> Path | None:
    source = source_of(module)
    candidates = (source.with_name(source.stem + suffix) for suffix in EXTENSION_SUFFIXES)
    return next((path for path in candidates if path.exists()), None)


def says(code: str, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if name != "TROUTER_PURE"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=inherited | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_no_module_is_listed_twice() -> None:
    assert len(set(LISTED)) == len(LISTED)


@pytest.mark.parametrize("module", LISTED)
def test_a_listed_module_has_its_source_and_its_types(module: str) -> None:
    source = source_of(module)
    assert source.is_file()
    assert types_of(source)


@pytest.mark.parametrize("module", LISTED)
def test_a_source_runs_without_cython(module: str) -> None:
    tree = ast.parse(source_of(module).read_text(encoding="utf-8"))
    for_types = [each for each in tree.body if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING"]
    allowed = {id(node) for each in for_types for node in ast.walk(each)}
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imports if "ython" in ast.unparse(node) and id(node) not in allowed] == []


@pytest.mark.parametrize("module", sorted({*LISTED} - _twin.INLINED))
def test_the_build_has_used_the_types_that_the_annotations_say(module: str) -> None:
    if _twin.running() != "compiled":
        pytest.skip("not built here, or not run")
    path = source_of(module).with_suffix(".pxd")
    assert path.read_text(encoding="utf-8") == c_types()[path]


def test_types_without_a_compiled_module_would_be_a_lie() -> None:
    typed = {module_of(path) for path in c_types()}
    assert typed == set(LISTED) | _twin.INLINED


def test_types_by_hand_are_of_inlined_functions_only() -> None:
    by_hand = {module_of(path) for path in tracked_files() if path.suffix == ".pxd" and path.stem != "__init__"}
    assert by_hand == _twin.INLINED


@pytest.mark.parametrize("module", sorted(_twin.INLINED))
def test_an_inlined_module_has_the_same_functions_on_both_sides(module: str) -> None:
    source = source_of(module)
    interpreted = {node.name for node in ast.parse(source.read_text()).body if isinstance(node, ast.FunctionDef)}
    compiled = {
        line.split("(")[0].split()[-1]
        for line in source.with_suffix(".pxd").read_text().splitlines()
        if line.startswith("cdef inline")
    }
    assert interpreted == compiled


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_with_compiled_modules_chooses_the_twin_before_its_first_import(package: str) -> None:
    folder = source_of(package).with_suffix("")
    assert (folder / "__init__.pxd").is_file()
    body = ast.parse((folder / "__init__.py").read_text(encoding="utf-8")).body
    steps = [ast.unparse(step) for step in body]
    chosen = next(index for index, step in enumerate(steps) if step.endswith("select(__path__)"))
    assert not [step for step in steps[:chosen] if step.startswith((f"from {package}", f"import {package}", "from ."))]


def test_the_interpreted_twin_runs_on_demand() -> None:
    assert says("from trouter import _twin; print(_twin.running())", TROUTER_PURE="1") == "interpreted"


def test_the_compiled_twin_runs_where_the_modules_were_built() -> None:
    if not all(extension_of(module) for module in LISTED) or stale_modules(PACKAGE):
        pytest.skip("not built here, or not from these sources")
    assert says("from trouter import _twin; print(_twin.running())") == "compiled"


def test_this_run_uses_the_requested_twin() -> None:
    if _twin.PURE:
        assert _twin.running() == "interpreted"
    elif all(extension_of(module) for module in LISTED):
        assert _twin.running() == "compiled"


def test_the_switch_prefers_the_source_to_an_extension_that_shadows_the_source(tmp_path: Path) -> None:
    package = tmp_path / "twins"
    package.mkdir()
    (package / "__init__.py").write_text("from trouter import _twin\n_twin.select(__path__)\n")
    (package / "hot.py").write_text("WHO = 'source'\n")
    (package / f"hot{EXTENSION_SUFFIXES[0]}").write_bytes(b"not a library")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import twins.hot; print(twins.hot.WHO)"
    assert says(code, TROUTER_PURE="1") == "source"
    with pytest.raises(AssertionError, match="ImportError"):
        says(code)


HIDDEN = re.compile(r"^cdef (?!class |extern |inline )[\w.]+ (?P<names>\w[\w, ]*)(\(|$)", re.MULTILINE)


def hidden_names(module: str) -> set[str]:
    """Return the names of a compiled module that only compiled modules can cimport."""
    types = types_of(source_of(module))
    return {name.strip() for found in HIDDEN.finditer(types) for name in found["names"].split(",")}


def taken_from(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (module, name) for each name that a source imports from a module."""
    package = module_of(path).split(".")[: None if path.name == "__init__.py" else -1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((source, alias.name) for alias in node.names)


def test_no_module_imports_names_that_the_compiled_twin_hides() -> None:
    hidden = {(module, name) for module in LISTED for name in hidden_names(module)}
    assert ("trouter.engine.ports", "_NO_SINK") in hidden
    names = {name for _, name in hidden}
    for path in tracked_files():
        if path.suffix == ".py" and names & words_in(path):
            cimported = set(re.findall(r"\w+", types_of(path)))
            assert {
                (module, name) for module, name in hidden & {*taken_from(path)} if name not in cimported
            } == set(), path
