"""The example of a network: its playbook and workflow type commands that there are, and its files are good."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.routers import ROOT
from trouter.cli import main, parser
from trouter.tools.networks.folder import read_folder

EXAMPLE: Final = ROOT / "examples" / "network"
#: What the workflow takes from its settings, and a shell from a variable.
GIVEN: Final = re.compile(r'"\$BUS"|<\(echo "\$PASSWORD"\)')


def commands_in(value: Any) -> Iterator[str]:
    """Yield the commands of trouter in a document of YAML."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from commands_in(each)
    elif isinstance(value, str) and value.startswith("trouter "):
        yield value


@pytest.mark.parametrize(("name", "count"), [("playbook.yml", 2), ("github-workflow.yml", 1)])
def test_each_command_is_one(name: str, count: int) -> None:
    commands = list(commands_in(yaml.safe_load((EXAMPLE / name).read_text(encoding="utf-8"))))
    assert len(commands) == count
    for command in commands:
        words = shlex.split(GIVEN.sub("given", command))[1:]
        assert parser(words[0]).parse_args(words).folder == Path("network")


def test_each_router_is_good_with_strict(tmp_path: Path) -> None:
    files = read_folder(EXAMPLE / "network")
    assert [file.id for file in files] == ["ams", "ber", "cph", "dub", "fra", "lon", "shop1", "shop2"]
    for file in files:
        (tmp_path / f"{file.id}.conf").write_text(file.text, encoding="utf-8")
    assert main(["check", "--strict", *(str(tmp_path / f"{file.id}.conf") for file in files)]) == 0
