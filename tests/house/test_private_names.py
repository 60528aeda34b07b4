"""No room uses a private name of the engine, which has public members and verbs for what others need."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.house.sources import PACKAGE, PIPELINE_PACKAGE

ENGINE = PACKAGE / "engine"


def private_names(path: Path) -> set[str]:
    """Return the names with one leading underscore that classes of a module define: methods, attributes, slots."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            found.add(node.attr)
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


def foreign_uses(path: Path, names: set[str]) -> list[str]:
    """Return the uses in a module of ``names`` on anything but its own objects."""
    return [
        f"{path.parent.name}/{path.name}:{node.lineno} {node.attr}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in names
        if not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})
    ]


def test_no_room_uses_a_private_name_of_the_engine() -> None:
    engine = set().union(*(private_names(path) for path in ENGINE.glob("*.py")))
    found: list[str] = []
    for room in [*sorted(PACKAGE.iterdir()), PIPELINE_PACKAGE]:
        sources = sorted(room.rglob("*.py")) if room.is_dir() and room != ENGINE else []
        own = set().union(*(private_names(path) for path in sources))
        found += [use for path in sources for use in foreign_uses(path, engine - own)]
    assert found == []


def test_a_use_of_a_private_name_would_be_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("class A:\n    def f(self, link):\n        return link._frames + self._frames\n")
    names = private_names(ENGINE / "link.py")
    assert "_frames" in names
    assert [use.split()[-1] for use in foreign_uses(module, names)] == ["_frames"]
