"""Where trouter is at home stands in packaging/home.toml, and nowhere else."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import pytest

from tests.house.sources import PIPELINE, ROOT, project

FILLED = {
    "documentation": "https://manual.test/trouter",
    "source": "https://source.test/trouter.git",
    "issues": "https://source.test/issues",
    "changelog": "https://source.test/changelog",
    "maintainer": "The keeper",
    "email": "keeper@manual.test",
    "security": "reports@manual.test",
}


@pytest.fixture(scope="module")
def home() -> ModuleType:
    spec = importlib.util.spec_from_file_location("home", ROOT / "packaging" / "home.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_file_has_what_home_toml_says(home: ModuleType) -> None:
    for path, text in home.files(home.read_home()).items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path}: make home"


def test_the_metadata_names_no_page_that_home_toml_does_not_have(home: ModuleType) -> None:
    known = {value for value in home.read_home().values() if value}
    for folder in (ROOT, PIPELINE):
        assert set(project(folder)["project"]["urls"].values()) <= known
    for path in home.files(home.read_home()):
        addresses = re.findall(
            r"[\w.]+@[\w.-]+\.[a-z]+|https?://[^\s\"'>]*trouter[^\s\"'>]*", (ROOT / path).read_text("utf-8")
        )
        assert set(addresses) <= known, path


def test_what_a_publisher_fills_in_is_in_every_file_and_can_be_taken_out(home: ModuleType) -> None:
    empty, filled = home.files(home.read_home()), home.files(FILLED)
    whole = "".join(filled.values())
    assert {name: value for name, value in FILLED.items() if value not in whole} == {}
    assert {path for path in filled if filled[path] == empty[path]} == set()
    for change in home.places(home.read_home()):
        filled[change.path] = home.replaced(filled[change.path], change)
    assert filled == empty


def test_a_file_that_has_lost_its_place_is_an_error(home: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"^NOTES: 0 lines begin with '## Contact'$"):
        home.replaced("nothing\n", home.Lines("NOTES", "## Contact", {"Write to ": "us"}))
