"""The entry points in pyproject.toml are those of the plugins, and they load."""

from __future__ import annotations

import importlib
import re
import tomllib
from pathlib import Path

from trouter.hooks import ENTRY_POINT_GROUP, ListenerFacts, Plugins, RouterFacts

ROOT = Path(__file__).parents[2]
DECLARED: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][
    ENTRY_POINT_GROUP
]


def test_every_module_with_hooks_is_declared_under_its_own_name() -> None:
    sources = (ROOT / "plugins" / "trouter_plugins").glob("*.py")
    plugins = {path.stem for path in sources if re.search(r"^\s*@hookimpl$", path.read_text(), re.MULTILINE)}
    assert DECLARED.keys() == plugins
    assert all(value == f"trouter_plugins.{name}" for name, value in DECLARED.items())


def test_they_load_together_and_serve_a_default_listener() -> None:
    plugins = Plugins([importlib.import_module(value) for value in DECLARED.values()])
    plugins.configure(RouterFacts("QDR.A"))
    assert plugins.sasl_mechanisms(ListenerFacts("here", "127.0.0.1", "amqp")) == ("EXTERNAL", "ANONYMOUS")
    assert not plugins.faults


def test_each_has_a_word_in_the_manual() -> None:
    manual = (ROOT / "docs" / "hooks.md").read_text()
    assert all(f"**{name}**" in manual for name in DECLARED)
