"""A loss of power while Spark plans a batch leaves half a file: each command names it with what there is to do."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.tests.test_landing import checkpoint
from trouter_pipeline.jobs import forward
from trouter_pipeline.kafka.failures import NotForwarded
from trouter_pipeline.streams import Pace, StreamFailed, add_to
from trouter_pipeline.tables import Table

DAY = date(2026, 3, 1)
MADE_BY: dict[str, Any] = {"job": "test", "version": 1, "parameters": {}}


@pytest.fixture(params=["", "v1\n{}", "v1\n{}\n", 'v1\n{}\n{"u": ', 'v1\n{}\n{"u": 9}\n{"u'])
def torn(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a checkpoint of a query with two sources at most, whose second batch is torn."""
    folder = checkpoint(tmp_path / "checkpoint", "q1")
    for name, number in (("offsets", 0), ("commits", 0), ("offsets", 1)):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / str(number)).write_text(request.param if number else 'v1\n{}\n{"u": 5}\n-')
    return folder


def follow(table: Table, folder: Path) -> None:
    stream: Any = None  # which no check of the checkpoint looks at
    add_to(table, stream, lambda rows: rows, Pace(), folder, None, **MADE_BY)


def test_a_stream_into_a_table_says_whether_the_batch_is_in_it(torn: Path, tmp_path: Path) -> None:
    table = Table(tmp_path, "alerts")
    rows = pa.table({"date": pa.array([DAY], pa.date32())})
    for batch in (0, 1):
        with pytest.raises(StreamFailed) as told:
            follow(Table(tmp_path, "alerts"), torn)
        assert str(told.value).startswith(f"{torn / 'offsets/1'} is not whole: the power failed, or ")
        assert "Nothing of batch 1 is in alerts: delete the file, and run again" in str(told.value)
        table.commit(rows, [DAY], inputs={}, batch=("q1", batch), **MADE_BY)
    with pytest.raises(StreamFailed, match=r"Batch 1 is in alerts, .* or give another --checkpoint"):
        follow(Table(tmp_path, "alerts"), torn)
    (torn / "offsets/1").unlink()
    with pytest.raises(AttributeError):  # the stream, which comes next
        follow(Table(tmp_path, "alerts"), torn)


def test_a_forwarder_finds_what_it_sent_in_the_topic(torn: Path) -> None:
    with pytest.raises(
        NotForwarded, match=r"offsets/1 is not whole: .* what was sent of batch 1 is found in the topic"
    ):
        forward.check_planned(torn)
    (torn / "offsets/1").unlink()
    forward.check_planned(torn)
