"""The manual's page on Kafka: its walk as it is printed, and its options and headers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipeline.tests.kafkas import Broker, tansu
from tests.house.sources import ROOT
from tests.walks import Shell, steps_in
from trouter_pipeline.kafka import records

PAGE = (ROOT / "docs" / "kafka.md").read_text(encoding="utf-8")
STEPS = steps_in(PAGE)
#: Seconds that only a hang takes, also where Spark takes a minute to start.
SPARK_S = 600.0
PORTS = ("5672", "5673", "5674", "45672")


def test_the_page_names_files_fields_and_headers_that_are_there() -> None:
    assert len(STEPS) == 12
    for name in set(re.findall(r"examples/capture/\w+\.\w+", PAGE)):
        assert (ROOT / name).is_file(), name
    headers = (records.SPOOL, records.SEQUENCE, records.SOURCE_HEADER, records.BODY, records.ERROR)
    assert all(f"`{name}`" in PAGE for name in headers)
    assert all(f"`{name}`" in PAGE for name in records.NAMED)


@pytest.mark.slow
@pytest.mark.pipeline_long
def test_the_walk_works_as_printed(tmp_path: Path) -> None:
    with tansu(tmp_path) as bootstrap:
        Broker(bootstrap, makes_topics=False).create("changes")
        port = int(bootstrap.rpartition(":")[2])
        Shell(tmp_path, PORTS, deadline_s=SPARK_S, brokers={"9092": port}).walk(STEPS)
