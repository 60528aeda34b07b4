"""The example of a network: its playbook and workflow type commands that there are, and the routers take its files."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.routers import ROOT, RunningRouter, running
from tests.tools.live import run
from trouter.cli import parser

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


@pytest.mark.slow
async def test_the_routers_take_the_files(tmp_path: Path) -> None:
    with ExitStack() as stack:
        shutil.copytree(EXAMPLE / "network", tmp_path / "network")
        routers: dict[str, RunningRouter] = {}
        for name in ("A", "B"):
            path = tmp_path / "network" / "routers" / f"{name}.conf"
            text = path.read_text(encoding="utf-8").replace("port: 5672", "port: 0").replace("port: 5674", "port: 0")
            if name == "A":
                text = text.replace("port: 5673", "port: 0")
            else:
                text = text.replace("port: 5673", f"port: {routers['A'].ports[1]}")
            path.write_text(text, encoding="utf-8")
            routers[name] = stack.enter_context(running(text, tmp_path))
            if name == "A":
                routers["A"].wait_for_line("Listening on", 2)
        routers["B"].wait_for_line("router A is a neighbour")
        ran = await run(
            "network", "apply", str(tmp_path / "network"), "-b", f"127.0.0.1:{routers['A'].ports[0]}", "--yes"
        )
        assert ran.status == 0, ran
        for router in routers.values():
            assert "prefix: news" in router.configuration.read_text(encoding="utf-8")
