"""Tests of the pipeline marked `one_twin`, which `make test` runs compiled only, reach no module with two twins."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house.sources import PIPELINE, ROOT, compiled_modules, imported_by, source_of

TESTS = sorted((PIPELINE / "tests").rglob("test_*.py"))
TWO_TWINS = {*compiled_modules(), *compiled_modules(PIPELINE)}
MARK = re.compile(r"^pytestmark = .*\bone_twin\b", re.MULTILINE)
#: What is not followed: the router and its tests have tests of their own on both twins.
BEYOND = re.compile(r"(trouter|tests)\.")


def reached(test: Path) -> set[str]:
    """Return what a test module imports, itself and by modules of the pipeline."""
    names: set[str] = set()
    ahead = [test]
    while ahead:
        fresh = imported_by(ahead.pop()) - names
        names |= fresh
        ahead += [path for name in fresh if not BEYOND.match(name) if (path := file_of(name)) is not None]
    return names


def file_of(module: str) -> Path | None:
    """Return the source of a module or package of this project; None for one of others."""
    source = source_of(module)
    return next((path for path in (source, source.with_suffix("") / "__init__.py") if path.is_file()), None)


@pytest.mark.parametrize("test", TESTS, ids=[str(path.relative_to(ROOT)) for path in TESTS])
def test_a_test_of_one_twin_reaches_no_module_with_two(test: Path) -> None:
    if MARK.search(test.read_text(encoding="utf-8")):
        assert reached(test) & TWO_TWINS == set(), "it needs both twins: take the mark away"


def test_the_mark_is_seen_and_modules_with_two_twins_are_reached() -> None:
    assert sum(1 for test in TESTS if MARK.search(test.read_text(encoding="utf-8"))) > 30
    assert "trouter_pipeline.decoding" in reached(PIPELINE / "tests" / "test_land.py")
