"""The manual's page on merged changes: its walk as it is printed, and its options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.house.sources import ROOT
from tests.walks import Shell, steps_in
from trouter_pipeline.changes import DELETES, SOURCE, SOURCE_FIELDS, UPSERTS
from trouter_pipeline.merging import BUCKETS

if TYPE_CHECKING:
    pass

PAGE = (ROOT / "docs" / "changes.md").read_text(encoding="utf-8")
STEPS = steps_in(PAGE)
#: Seconds that only a hang takes, also where Spark takes a minute to start.
SPARK_S = 600.0
PORTS = ("5672", "5673", "5674", "45672")


def test_the_page_names_files_operations_and_fields_that_are_there() -> None:
    assert len(STEPS) == 13
    for name in set(re.findall(r"examples/capture/\w+\.\w+", PAGE)):
        assert (ROOT / name).is_file(), name
    assert all(f"`{word}`" in PAGE for word in (*DELETES, *UPSERTS))
    assert set(re.findall(rf"(?<![-\w]){re.escape(SOURCE)}(\w+)", PAGE)) <= set(SOURCE_FIELDS)
    assert f"({BUCKETS} for each source)" in PAGE


@pytest.mark.slow
@pytest.mark.pipeline_long
def test_the_walk_works_as_printed(tmp_path: Path) -> None:
    Shell(tmp_path, PORTS, deadline_s=SPARK_S).walk(STEPS)
