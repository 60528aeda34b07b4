"""Tests refuse to run compiled modules that are older than their sources, and name what has changed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from tests.compiled import RECORD, stale_modules
from tests.house.sources import PACKAGE, PIPELINE, PIPELINE_PACKAGE, ROOT, compiled_modules
from trouter import _twin

SUFFIX = EXTENSION_SUFFIXES[0]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a package with one compiled module, its source and its types."""
    folder = tmp_path / "trouter"
    (folder / "core").mkdir(parents=True)
    for name in ("hot.py", "hot.pxd", f"hot{SUFFIX}"):
        (folder / "core" / name).write_text(name)
    names = ("trouter/core/hot.py", "trouter/core/hot.pxd")
    lines = [f"{hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (folder / RECORD).write_text("".join(lines))
    return folder


def test_compiled_modules_of_the_sources_beside_them_are_accepted(package: Path) -> None:
    os.utime(package / "core" / "hot.py", (2**32, 2**32))  # as a checkout may: only contents count
    assert stale_modules(package) == []


@pytest.mark.parametrize("name", ["hot.py", "hot.pxd"])
def test_a_changed_source_is_named(package: Path, name: str) -> None:
    (package / "core" / name).write_text("other")
    assert stale_modules(package) == [f"trouter/core/{name} has changed since it was compiled"]


def test_a_removed_source_is_named(package: Path) -> None:
    (package / "core" / "hot.py").unlink()
    assert stale_modules(package) == ["trouter/core/hot.py is compiled and no longer there"]


def test_a_compiled_module_that_the_build_did_not_make_is_named(package: Path) -> None:
    (package / "core" / f"gone{SUFFIX}").write_text("")
    assert stale_modules(package) == [f"trouter/core/gone{SUFFIX} was left by a build of other sources: remove it"]


def test_a_build_that_did_not_end_is_named(package: Path) -> None:
    (package / RECORD).unlink()
    assert stale_modules(package) == [f"{package / RECORD} is missing: the build did not end"]


def test_without_compiled_modules_nothing_is_stale(package: Path) -> None:
    (package / "core" / f"hot{SUFFIX}").unlink()
    (package / "core" / "hot.py").write_text("other")
    assert stale_modules(package) == []


@pytest.mark.parametrize(
    ("project", "sources"), [(ROOT, PACKAGE), (PIPELINE, PIPELINE_PACKAGE)], ids=["trouter", "pipeline"]
)
def test_the_build_records_every_listed_module(project: Path, sources: Path) -> None:
    if _twin.running() != "compiled":
        pytest.skip("not built here, or not run")
    recorded = {line.split("  ")[1] for line in (sources / RECORD).read_text().splitlines()}
    listed = {module.replace(".", "/") + ".py" for module in compiled_modules(project)}
    assert {name for name in recorded if name.endswith(".py")} == listed
    types = {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*.pxd")}
    assert types <= recorded, "a module that has types of the router is stale when they change"


def test_types_of_another_package_that_changed_are_named(package: Path, tmp_path: Path) -> None:
    used = tmp_path / "elsewhere" / "lent"
    used.mkdir(parents=True)
    (used / "types.pxd").write_text("types")
    with (package / RECORD).open("a") as record:
        record.write(f"{hashlib.sha256(b'types').hexdigest()}  lent/types.pxd\n")
    assert stale_modules(package, used) == []
    (used / "types.pxd").write_text("other")
    assert stale_modules(package, used) == ["lent/types.pxd has changed since it was compiled"]


def test_a_run_of_stale_modules_ends_before_its_first_test(package: Path) -> None:
    (package / "core" / "hot.py").write_text("other")
    tests = package.parent / "tests"
    tests.mkdir()
    for name in ("conftest.py", "tests/compiled.py", "tests/one_process.py", "tests/own_process.py"):
        shutil.copy(ROOT / name, package.parent / name)
    (package / "__init__.py").touch()
    (tests / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "tests"]
    environment = {name: value for name, value in os.environ.items() if name != "TROUTER_PURE"}
    statuses = {}
    for twin, pure in (("compiled", {}), ("interpreted", {"TROUTER_PURE": "1"})):
        done = subprocess.run(
            command,
            cwd=package.parent,
            env=environment | {"PYTHONPATH": str(package.parent)} | pure,
            capture_output=True,
            text=True,
            check=False,
        )
        statuses[twin] = done.returncode
        assert ("trouter/core/hot.py has changed since it was compiled" in done.stdout + done.stderr) is not bool(pure)
    assert statuses == {"compiled": pytest.ExitCode.USAGE_ERROR, "interpreted": pytest.ExitCode.OK}
