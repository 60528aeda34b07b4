"""The examples in the manual's reference pass `trouter check`, and their links point to existing pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from manual.examples import SHOWN
from tests.house.sources import ROOT
from trouter.cli import main
from trouter.config.types import CONFIGURED

METRICS = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
ATTRIBUTES = {kind.section: {row.name for row in kind.attributes} for kind in CONFIGURED}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the certificates that the examples name."""
    made = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        assert main(["certs", "ca"]) == 0
        assert main(["certs", "server", "router", "--host", "localhost"]) == 0
    return made


def test_examples_are_of_sections() -> None:
    assert set(SHOWN) <= set(ATTRIBUTES)


@pytest.mark.parametrize("section", sorted(SHOWN))
def test_an_example_is_good_and_about_its_section(section: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    Path("router.conf").write_text(SHOWN[section].example)
    assert main(["check", "router.conf"]) == 0
    assert section == "console" or re.search(rf"^{section} \{{", SHOWN[section].example, re.MULTILINE)


@pytest.mark.parametrize("section", sorted(SHOWN))
def test_the_metrics_pages_and_attributes_named_by_an_example_exist(section: str) -> None:
    shown = SHOWN[section]
    assert [name for name in shown.metrics if f"`{name}`" not in METRICS] == []
    assert [name for name in shown.pages if not (ROOT / "docs" / name).is_file()] == []
    for kind, names in re.findall(r"query --type (\w+) ?([\w ]*)", "\n".join(shown.commands)):
        assert kind not in ATTRIBUTES or set(names.split()) <= ATTRIBUTES[kind]
