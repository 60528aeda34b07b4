"""No module imports itself through others, and the routing core declares the type of each value."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter

import pytest

from .sources import PACKAGE, PACKAGES, c_types, imported_by, module_of, named, names_in


def graph() -> dict[str, set[str]]:
    """Return each module's imports of other modules, for types too, and those of its compiled twin."""
    found: dict[str, set[str]] = {}
    for path in (source for package in PACKAGES for source in package.rglob("*.py")):
        sources = [path, *({path.with_suffix(".pxd")} & c_types().keys())]
        found[module_of(path)] = {name for source in sources for name in imported_by(source)}
    return {module: {name for name in names if name in found and name != module} for module, names in found.items()}


def test_no_module_imports_itself_by_way_of_others() -> None:
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as circle:
        pytest.fail(" <- ".join(circle.args[1]))


def test_a_circle_would_be_found() -> None:
    modules = graph()
    modules["trouter.core.tenants"].add("trouter.core.router")
    with pytest.raises(CycleError):
        TopologicalSorter(modules).prepare()


def test_the_core_has_no_values_of_any_type() -> None:
    sources = sorted((PACKAGE / "core").rglob("*.py"))
    assert sources
    assert [named(path) for path in sources if names_in(path, re.compile("Any"))] == []
