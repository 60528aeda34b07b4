"""An object has all that it calls when its constructor returns.

What another object notifies is given to its constructor, or registers itself by a verb. So no attribute begins as a
function that does nothing, and no module sets a function on an object of another class.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from .sources import PACKAGES, ROOT, named

#: Assignments that stay, and why. An entry that is no longer needed fails the test.
ALLOWED_ASSIGNMENTS = {
    "trouter/cli/completion.py action.completer": "argcomplete reads it there",
    "trouter/cli/contexts.py action.completer": "argcomplete reads it there",
    "trouter/tools/options.py saved.completer": "argcomplete reads it there",
}
#: Names of attributes that hold functions in one class, and data in others.
ALSO_DATA = {"done", "now", "rows"}
#: Functions that only return and are passed on, and why.
ALLOWED_FUNCTIONS = {
    "trouter/columns/process.py _nothing": "an answer: the number of what only pools of memory have",
    "trouter/policy/explain.py _no_others": "an answer: the user of an explanation has no other links",
    "trouter/policy/judge.py _none": "an answer: nothing is counted for a link that is denied anyway",
    "trouter/tools/progress.py no_progress": "what a command shows without a terminal; callers compare with it",
}

SOURCES = [path for folder in (*PACKAGES, ROOT / "plugins") for path in sorted(folder.rglob("*.py"))]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def typed(path: Path) -> bool:
    """Return whether a module names the type of functions, which is faster than to look for attributes of this type."""
    return "Callable" in path.read_text(encoding="utf-8")


def aliases(tree: ast.Module) -> set[str]:
    """Return the names that a module gives to types of functions."""
    return {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript) and is_callable(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def is_callable(annotation: ast.expr, named_so: set[str]) -> bool:
    """Return whether a type is that of a function, or of a function or None."""
    if isinstance(annotation, ast.BinOp):
        return any(is_callable(side, named_so) for side in (annotation.left, annotation.right))
    kind = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return isinstance(kind, ast.Name) and (kind.id == "Callable" or kind.id in named_so)


def function_attributes(tree: ast.Module) -> set[str]:
    """Return the names of the attributes that hold a function, by their types or those of the parameters put there."""
    named_so = aliases(tree)
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and is_callable(node.annotation, named_so):
            if isinstance(node.target, ast.Attribute):
                found.add(node.target.attr)
        elif isinstance(node, ast.ClassDef):
            found |= {
                each.target.id
                for each in node.body
                if isinstance(each, ast.AnnAssign)
                and isinstance(each.target, ast.Name)
                and is_callable(each.annotation, named_so)
            }
        elif isinstance(node, ast.FunctionDef):
            found |= set(stored_parameters(node, named_so))
    return found


def stored_parameters(function: ast.FunctionDef, named_so: set[str]) -> Iterator[str]:
    """Yield the attributes of ``self`` in which a function keeps those of its parameters that are functions."""
    given = {
        each.arg
        for each in [*function.args.args, *function.args.kwonlyargs]
        if each.annotation is not None and is_callable(each.annotation, named_so)
    }
    for node in ast.walk(function) if given else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in given:
            yield from (target.attr for target in node.targets if isinstance(target, ast.Attribute))


def foreign_assignments(tree: ast.Module, attributes: set[str]) -> Iterator[str]:
    """Yield the assignments to such attributes of other objects."""
    for node in ast.walk(tree):
        sets_function = isinstance(node, ast.Assign) and not isinstance(node.value, ast.Constant)
        for target in node.targets if isinstance(node, ast.Assign) and sets_function else []:
            for each in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(each, ast.Attribute) and each.attr in attributes and not is_own(each.value):
                    yield ast.unparse(each)


def is_own(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Name) and expression.id in {"self", "cls"}


def does_nothing(function: ast.FunctionDef) -> bool:
    """Return whether a function only returns, at most a constant or an empty collection."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return all(isinstance(each, ast.Pass) or (isinstance(each, ast.Return) and is_empty(each.value)) for each in body)


def is_empty(value: ast.expr | None) -> bool:
    return value is None or isinstance(value, ast.Constant) or (isinstance(value, ast.Dict) and not value.keys)


def idle_functions(tree: ast.Module) -> Iterator[str]:
    """Yield the functions of a module that do nothing and are passed on, not called."""
    idle = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and does_nothing(node)}
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    yield from sorted(
        {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and node.id in idle and id(node) not in called
        }
    )


def test_no_function_is_set_on_another_object() -> None:
    attributes = set().union(*(function_attributes(parsed(path)) for path in SOURCES if typed(path))) - ALSO_DATA
    found = {f"{named(path)} {each}" for path in SOURCES for each in foreign_assignments(parsed(path), attributes)}
    assert found == ALLOWED_ASSIGNMENTS.keys()


def test_no_function_that_does_nothing_is_passed_on() -> None:
    found = {f"{named(path)} {name}" for path in SOURCES for name in idle_functions(parsed(path))}
    assert found == ALLOWED_FUNCTIONS.keys()


BAD = """
Writer = Callable[[int], None]

class Bell:
    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self.on_rung: Callable[[], None] | None = None
        self.write: Writer = _nothing

def join(house, bell):
    bell.on_rung, house.number = house.open, 1
    bell.on_rung = None
    house.bell.write = house.note

def _nothing(count: int) -> None:
    \"\"\"Write nothing.\"\"\"
"""


def test_both_are_found() -> None:
    tree = ast.parse(BAD)
    assert function_attributes(tree) == {"_ring", "on_rung", "write"}
    assert list(foreign_assignments(tree, {"on_rung", "write"})) == ["bell.on_rung", "house.bell.write"]
    assert list(idle_functions(tree)) == ["_nothing"]


@pytest.mark.parametrize("body", ["pass", "return", "return None", "return False", "return 0", "return {}"])
def test_what_does_nothing_is_known(body: str) -> None:
    (function,) = ast.parse(f"def f(x):\n    {body}\n").body
    assert isinstance(function, ast.FunctionDef)
    assert does_nothing(function)
