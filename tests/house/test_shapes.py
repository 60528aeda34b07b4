"""A class is small enough to be known.

These limits stand in place of one on the length of modules, which cut classes into files by inheritance. A class's
depth counts the classes of this project above ``object`` on its longest line, itself included. Its methods are its own
and inherited ones; properties and special methods, which nobody calls by name, are not counted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .sources import PACKAGES, module_of

MAX_DEPTH = 3
MAX_METHODS = 35


class Shape(NamedTuple):
    """What a class has by itself: its bases in this project, and its methods."""

    bases: tuple[str, ...]
    methods: frozenset[str]


# --- classes


def shapes_in(path: Path) -> Iterator[tuple[str, Shape]]:
    """Yield each class of a module, by its name with the module's."""
    module = module_of(path)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {
        alias.asname or alias.name: f"{source_of(node, path)}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
            names = [base.id for base in bases if isinstance(base, ast.Name)]
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            yield (
                f"{module}.{node.name}",
                Shape(
                    tuple(imported.get(name, f"{module}.{name}") for name in names),
                    frozenset(each.name for each in methods if is_method(each)),
                ),
            )


def source_of(node: ast.ImportFrom, path: Path) -> str:
    """Return the module that an import names, relative ones by their full name."""
    package = module_of(path).split(".") if path.name == "__init__.py" else module_of(path).split(".")[:-1]
    above = package[: len(package) - node.level + 1] if node.level else []
    return ".".join([*above, *([node.module] if node.module else [])])


def is_method(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = [
        each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in function.decorator_list
    ]
    special = function.name.startswith("__") and function.name.endswith("__")
    return not special and not {"property", "cached_property", "setter", "overload"}.intersection(decorators)


@cache
def shapes() -> dict[str, Shape]:
    return dict(shape for package in PACKAGES for path in sorted(package.rglob("*.py")) for shape in shapes_in(path))


def depth_of(name: str) -> int:
    shape = shapes().get(name)
    return 0 if shape is None else 1 + max(map(depth_of, shape.bases), default=0)


def methods_of(name: str) -> frozenset[str]:
    shape = shapes().get(name)
    return frozenset() if shape is None else shape.methods.union(*map(methods_of, shape.bases))


def test_no_class_stands_on_a_tower_of_others() -> None:
    assert {name for name in shapes() if depth_of(name) > MAX_DEPTH} == set()


def test_no_class_has_more_methods_than_a_reader_remembers() -> None:
    found = {name: count for name in shapes() if (count := len(methods_of(name))) > MAX_METHODS}
    assert found == {}


def test_links_differ_in_what_they_are_composed_of_and_not_in_their_class() -> None:
    links = {"trouter.core.ingress.Ingress", "trouter.core.egress.Egress"}
    assert links <= set(shapes())
    assert {name for name, shape in shapes().items() if links.intersection(shape.bases)} == set()


def test_the_shapes_are_those_of_the_classes() -> None:
    source, ingress = "trouter.core.arrival.DeliverySource", "trouter.core.ingress.Ingress"
    assert (depth_of(source), depth_of(ingress)) == (2, 3)
    assert methods_of(source) < methods_of(ingress)
    assert {"accept_delivery", "on_credit", "on_transfer"} <= methods_of(ingress)
    assert "capacity" not in methods_of(ingress)
