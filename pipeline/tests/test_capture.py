"""The manual's page on capture, command by command as it is printed: three routers, two spools, landed twice."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tests.walks import Shell, steps_in

pytestmark = pytest.mark.one_twin

STEPS = steps_in((ROOT / "docs" / "capture.md").read_text(encoding="utf-8"))
#: Seconds that only a hang takes, also where Spark takes a minute to start.
SPARK_S = 600.0
PORTS = ("5672", "5673", "5674", "45672")


def test_the_page_has_its_steps_and_names_existing_files() -> None:
    assert len(STEPS) == 11
    for name in set(re.findall(r"examples/capture/\w+\.\w+", " ".join(step.command for step in STEPS))):
        assert (ROOT / name).is_file(), name


@pytest.mark.slow
@pytest.mark.pipeline_long
def test_the_walk_works_as_printed(tmp_path: Path) -> None:
    Shell(tmp_path, PORTS, deadline_s=SPARK_S).walk(STEPS)
    shutil.rmtree(tmp_path / "captured")
