"""A class has its name alone, so that a search for the name finds the one class and what uses it."""

from __future__ import annotations

import ast
from collections import defaultdict

from trouter import client, hooks

from .sources import PACKAGE, module_of

#: What users of the client and authors of plugins write is called by AMQP's words, as in the engine, the core and wire.
PUBLIC = frozenset(client.__all__) | frozenset(hooks.__all__)


def homes() -> dict[str, list[str]]:
    """Return the modules with a class of each name; private classes are their module's own."""
    found = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module_of(path))
    return found


def test_no_two_classes_have_one_name() -> None:
    assert {name: modules for name, modules in homes().items() if len(modules) > 1 and name not in PUBLIC} == {}


def test_a_public_name_is_that_of_one_more_class_at_most() -> None:
    assert {name: modules for name, modules in homes().items() if len(modules) > 2} == {}


def test_the_classes_are_found() -> None:
    assert homes()["Router"] == ["trouter.core.router"]
    assert len(homes()) > 800
