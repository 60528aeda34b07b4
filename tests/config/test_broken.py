"""A collection of broken files: each error is reported with its line and its cure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trouter.config import ConfigurationError, load

HERE = Path(__file__).parent
BROKEN = HERE / "broken"
#: By file: the line, the message and the cure of each error in it.
EXPECTED: dict[str, list[list[object]]] = json.loads((HERE / "broken.json").read_text(encoding="utf-8"))


def test_the_collection_is_whole() -> None:
    assert {path.name for path in BROKEN.iterdir()} == set(EXPECTED)
    assert len(EXPECTED) >= 60


@pytest.mark.parametrize("name", EXPECTED)
def test_errors_of_a_file_name_the_place_the_fault_and_the_remedy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BROKEN)
    with pytest.raises(ConfigurationError) as caught:
        load(Path(name))
    found: list[list[object]] = [[one.place.line, one.message, one.suggestion] for one in caught.value.problems]
    assert found == EXPECTED[name]
    assert all(one.suggestion for one in caught.value.problems)


def test_no_password_of_a_broken_file_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BROKEN)
    with pytest.raises(ConfigurationError) as caught:
        load(Path("password_without_user.conf"))
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value)
