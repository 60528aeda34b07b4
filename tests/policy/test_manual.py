"""The manual of the policy: its examples load, and decide as it describes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trouter.cli import main
from trouter.policy.kinds import Reason

PAGE = (Path(__file__).parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def block(kind: str, number: int = 0) -> str:
    return [text for name, text in BLOCKS if name == kind][number]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "router.conf").write_text(block("conf"))
    (tmp_path / "expected.json").write_text(block("json"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_example_is_explained_with_the_printed_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = block("sh").split()
    assert command[0] == "trouter"
    assert main(command[1:]) == 0
    assert capsys.readouterr().out == block("text")


def test_the_example_meets_its_expectations_and_a_failure_has_the_printed_text(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["policy", "test", "expected.json"]) == 0
    assert capsys.readouterr().out == "expected.json: 12 as expected\n"
    path = folder / "expected.json"
    path.write_text(path.read_text().replace('"addresses"', '# "addresses"'))
    assert main(["policy", "test", "expected.json"]) == 1
    assert capsys.readouterr().out == block("text", 1)


def test_every_reason_is_in_the_manual() -> None:
    assert [reason for reason in Reason if f"{reason.value}`" not in PAGE] == []
