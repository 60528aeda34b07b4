"""The manual's chapter is true: its walk works as printed, its queries run, its tables are those that jobs make."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tests.house.sources import ROOT
from tests.pipeline.stored import a_day
from tests.routers import DEADLINE_S
from trouter.cli import main
from trouter.cli.pipeline import ACTIONS
from trouter.pipeline.decisions import ANSWERS
from trouter.pipeline.needs import missing
from trouter.pipeline.options import manual
from trouter.pipeline.report.stored import COLUMNS

PAGE = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
PORT = "5672"


def chapter(heading: str) -> str:
    assert f"\n## {heading}\n" in PAGE
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def steps() -> list[tuple[str, list[str]]]:
    """(command, the words of each line that it is said to print)."""
    blocks = re.findall(r"^```console\n(.*?)^```", chapter("Step by step"), re.MULTILINE | re.DOTALL)
    commands = [each for block in blocks for each in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(each.splitlines()[0], each.splitlines()[1:]) for each in commands]


def queries() -> list[str]:
    blocks = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return [each for block in blocks for each in block.split(";\n") if each.strip()]


class Shell:
    """Somebody who types in a folder of their own; what ends in `&` runs until it is killed, the last one first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.begun: list[subprocess.Popen[str]] = []
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = str(server.getsockname()[1])
        shutil.copytree(ROOT / "examples", folder / "examples")
        for path in folder.glob("examples/pipeline/*.conf"):
            path.write_text(self.moved(path.read_text(encoding="utf-8")), encoding="utf-8")
        (folder / "bin").mkdir()
        for name, words in (("trouter", f'"{sys.executable}" -m trouter'), ("python", f'"{sys.executable}"')):
            (folder / "bin" / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            (folder / "bin" / name).chmod(0o755)

    def moved(self, text: str) -> str:
        """The same with a port that is free."""
        return re.sub(rf"\b{PORT}\b", self.port, text)

    def environment(self) -> dict[str, str]:
        import os

        return {
            **os.environ,
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
        }

    def start(self, command: str) -> None:
        process = subprocess.Popen(
            shlex.split(self.moved(command)), cwd=self.folder, env=self.environment(), stderr=subprocess.PIPE, text=True
        )
        self.begun.append(process)
        assert process.stderr is not None
        for line in process.stderr:
            if re.search(r"Operational|receiving|into spool", line):
                return
        raise AssertionError(f"{command} ended")

    def kill(self) -> None:
        while self.begun:
            process = self.begun.pop()
            process.terminate()
            process.communicate(timeout=DEADLINE_S)
            assert process.returncode == 0

    def type(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", self.moved(command)], cwd=self.folder, env=self.environment(),
            capture_output=True, text=True, timeout=10 * DEADLINE_S, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    def walk(self, commands: list[tuple[str, list[str]]]) -> None:
        try:
            for command, expected in commands:
                if command.endswith(" &"):
                    self.start(command.removesuffix(" &"))
                elif command.startswith("kill "):
                    self.kill()
                else:
                    status, said = self.type(command)
                    assert status == 0, f"{command}: {said}"
                    assert not [line for line in expected if line.strip() not in said], f"{command}: {said}"
        finally:
            for process in self.begun:
                process.kill()
                process.communicate()


def ask(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every query of the page, in a folder with `root` in it; the rows of each that has any."""
    found = {}
    with duckdb.connect() as connection:
        connection.execute(f"SET file_search_path = '{folder}'")
        for query in queries():
            connection.execute(re.sub(r"'root/", f"'{folder}/root/", query))
            found[query] = connection.fetchall()
    return found


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The walk up to where Spark is needed."""
    folder = tmp_path_factory.mktemp("walk")
    shell = Shell(folder)
    commands = steps()
    last = next(place for place, (command, _) in enumerate(commands) if "pipeline compact" in command)
    shell.walk(commands[: last + 1])
    return folder


@pytest.mark.slow
def test_the_walk_works_as_printed_up_to_spark(walked: Path) -> None:
    assert (walked / "root" / "records" / "_manifest.json").exists()


@pytest.mark.slow
def test_the_queries_run_and_count_what_was_sent(walked: Path) -> None:
    """On the records of the walk, and on tables that say the same of every column as those of jobs."""
    if not (walked / "root" / "tables").exists():
        a_day(walked / "root")
    answers = ask(walked)
    metered = next(rows for query, rows in answers.items() if "sum(d_msgs) AS msgs" in query)
    assert {(row[1], row[4]): row[5] for row in metered}["acme", "in"] == 3000
    assert next(rows for query, rows in answers.items() if "AS missing" in query) == []
    assert all(rows for query, rows in answers.items() if query.strip().startswith(("SELECT", "WITH"))
               and "missing" not in query)  # fmt: skip


@pytest.mark.slow
@pytest.mark.pipeline_long
def test_the_rest_of_the_walk_works_as_printed(walked: Path) -> None:
    if needs := missing():
        pytest.skip("; ".join(need.what for need in needs))
    shutil.rmtree(walked / "root" / "tables", ignore_errors=True)
    shutil.rmtree(walked / "examples")
    shutil.rmtree(walked / "bin")
    commands = steps()
    first = next(place for place, (command, _) in enumerate(commands) if "pipeline compact" in command) + 1
    Shell(walked).walk(commands[first:])
    billed = next(rows for query, rows in ask(walked).items() if "AS messages, sum(bytes)" in query)
    assert {row[1]: (row[2], row[5]) for row in billed}["acme"] == (3000, True)
    of_jobs = {name: columns for name, columns in made(walked / "root").items() if not name.startswith("cards")}
    assert documented() == of_jobs


def documented() -> dict[str, list[tuple[str, str]]]:
    """The tables of the page: columns and types."""
    found = {}
    for name, rows in re.findall(r"^### `(\w+)`\n(.*?)(?=^### |\Z)", chapter("Tables"), re.MULTILINE | re.DOTALL):
        found[name] = re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", rows, re.MULTILINE)
    return found


def made(root: Path) -> dict[str, list[tuple[str, str]]]:
    """The tables of a folder: columns and types as their manifests say."""
    from trouter.pipeline.tables import Table

    found = {}
    for folder in (root / "tables").iterdir():
        manifest = Table(root, folder.name).manifest()
        assert manifest is not None
        found[folder.name] = re.findall(r"`(\w+)` ([^`]+?)(?=, `|\Z)", manifest.schema)
    return found


def test_each_action_is_in_the_chapter() -> None:
    assert not [action for action in ACTIONS if not re.search(rf"`?trouter pipeline {action}\b|`{action}`", PAGE)]


def test_what_the_report_reads_is_in_the_tables_of_the_chapter() -> None:
    tables = documented()
    for name, columns in COLUMNS.items():
        assert {column for column in columns if column != "date"} <= {column for column, _ in tables[name]}, name


def test_options_are_those_that_there_are() -> None:
    assert manual().rstrip() in PAGE, "put what trouter.pipeline.options.manual() says into docs/pipeline.md"


def test_answers_of_rules_are_those_that_are_given() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| `([\w-]+)` \| (\d+) min \|$", chapter("Publishing decisions"), re.MULTILINE)
    assert rows == [(rule, answer.action, str(answer.minutes)) for rule, answer in ANSWERS.items()]


def test_files_that_the_chapter_names_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert all((ROOT / name).exists() for name in re.findall(r"examples/[\w/.-]+", PAGE))
    assert all((ROOT / "docs" / name).exists() for name in re.findall(r"\]\(([\w-]+\.md)", PAGE))
    assert main(["pipeline", "doctor", "--submit"]) == 0
    assert capsys.readouterr().out
