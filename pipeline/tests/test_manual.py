"""The manual's chapter agrees with the code: its walk works, its queries run, its tables are those of the jobs."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable

from pipeline.tests.stored import a_day
from tests.house.sources import ROOT
from tests.walks import Shell, Step, steps_in
from trouter.cli import main
from trouter_pipeline.commands import ACTIONS
from trouter_pipeline.datasets import Records
from trouter_pipeline.decisions import ANSWERS
from trouter_pipeline.needs import missing
from trouter_pipeline.options import manual
from trouter_pipeline.report.stored import COLUMNS

PAGE = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
PORTS = ("5672",)
#: Seconds that only a hang takes, also where Spark takes a minute to start.
SPARK_S = 600.0


def chapter(heading: str) -> str:
    assert f"\n## {heading}\n" in PAGE
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def steps() -> list[Step]:
    return steps_in(chapter("Step by step"))


def first_with_spark(commands: list[Step]) -> int:
    """Return the index of the first command that needs Spark."""
    return next(place for place, step in enumerate(commands) if "pipeline compact" in step.command) + 1


def queries() -> list[str]:
    blocks = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return [each for block in blocks for each in block.split(";\n") if each.strip()]


def ask(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Run every query of the page in a folder with `root` in it; return the rows of each that has any."""
    found = {}
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name in ("tables/meter", "tables/latency", "records"):
            table = DeltaTable(str(folder / "root" / name))
            connection.register(name.rpartition("/")[2], table.to_pyarrow_dataset())
        for query in queries():
            connection.execute(re.sub(r"'root/", f"'{folder}/root/", query))
            found[query] = connection.fetchall()
    return found


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the walk up to the first command that needs Spark."""
    folder = tmp_path_factory.mktemp("walk")
    commands = steps()
    Shell(folder, PORTS, deadline_s=SPARK_S).walk(commands[: first_with_spark(commands)])
    return folder


@pytest.mark.slow
def test_the_walk_works_as_printed_up_to_spark(walked: Path) -> None:
    assert Records(walked / "root").segments


@pytest.mark.slow
def test_the_queries_run_and_count_the_sent_messages(walked: Path) -> None:
    """On the records of the walk, and on tables with the columns that the jobs write."""
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
    commands = steps()
    Shell(walked, PORTS, deadline_s=SPARK_S).walk(commands[first_with_spark(commands) :])
    billed = next(rows for query, rows in ask(walked).items() if "AS messages, sum(bytes)" in query)
    assert {row[1]: (row[2], row[5]) for row in billed}["acme"] == (3000, True)
    assert documented() == made(walked / "root")


def documented() -> dict[str, list[tuple[str, str]]]:
    """Return the tables of the page: columns and types."""
    found = {}
    for name, rows in re.findall(r"^### `(\w+)`\n(.*?)(?=^### |\Z)", chapter("Tables"), re.MULTILINE | re.DOTALL):
        found[name] = re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", rows, re.MULTILINE)
    return found


def made(root: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the tables of the jobs in a folder: columns and types from their manifests."""
    from pyspark.sql.types import StructType

    from trouter_pipeline.delta import schema_of
    from trouter_pipeline.landing import Landing
    from trouter_pipeline.tables import Table

    found = {}
    for folder in (root / "tables").iterdir():
        if Landing(root, folder.name.removesuffix("_dead")).identity() is not None:
            continue
        version = Table(root, folder.name).version()
        assert version is not None
        schema = StructType.fromJson(json.loads(schema_of(version.columns)))
        found[folder.name] = [(each.name, each.dataType.simpleString()) for each in schema if each.name != "date"]
    return found


def test_each_action_is_in_the_chapter() -> None:
    assert not [action for action in ACTIONS if not re.search(rf"`?trouter pipeline {action}\b|`{action}`", PAGE)]


def test_the_tables_of_the_chapter_have_every_column_that_the_report_reads() -> None:
    tables = documented()
    for name, columns in COLUMNS.items():
        assert {column for column in columns if column != "date"} <= {column for column, _ in tables[name]}, name


def test_the_documented_options_equal_the_options_of_the_code() -> None:
    assert manual().rstrip() in PAGE, "put what trouter_pipeline.options.manual() says into docs/pipeline.md"


def test_the_documented_answers_to_rules_equal_the_answers_of_the_code() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| `([\w-]+)` \| (\d+) min \|$", chapter("Publishing decisions"), re.MULTILINE)
    assert rows == [(rule, answer.action, str(answer.minutes)) for rule, answer in ANSWERS.items()]


def test_files_that_the_chapter_names_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert all((ROOT / name).exists() for name in re.findall(r"examples/[\w/.-]+", PAGE))
    assert all((ROOT / "docs" / name).exists() for name in re.findall(r"\]\(([\w-]+\.md)", PAGE))
    assert main(["pipeline", "doctor", "--submit"]) == 0
    assert capsys.readouterr().out
