"""Files of tables: what they hold for readers, and what writing them must not cost."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from trouter_pipeline.parquet import write, write_part
from trouter_pipeline.places import Place

pytestmark = pytest.mark.one_twin


def test_bytes_have_neither_a_dictionary_nor_limits_and_other_columns_have_both(tmp_path: Path) -> None:
    rows = pa.table({"n": [1, 2], "name": ["a", "a"], "body": [b"x" * 5000, b"y" * 5000]})
    file = write_part(rows, Place.of(tmp_path), {"date": "2026-03-01"})
    with (Place.of(tmp_path) / file.path).parquet() as opened:
        group = opened.metadata.row_group(0)
        assert opened.metadata.serialized_size < 2000
    columns = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    assert {name for name, column in columns.items() if column.has_dictionary_page} == {"n", "name"}
    assert {name for name, column in columns.items() if column.is_stats_set} == {"n", "name"}


@pytest.mark.parametrize("days", [(1, 1, 1), (1, 2, 1), (1, None, None)])
def test_rows_are_divided_by_their_partition(tmp_path: Path, days: tuple[int | None, ...]) -> None:
    dates = [None if day is None else date(2026, 3, day) for day in days]
    rows = pa.table({"n": range(3), "date": pa.array(dates, pa.date32()), "to": ["a/b"] * 3})
    found = {}
    for file in write(rows, Place.of(tmp_path), ("to", "date")):
        with (Place.of(tmp_path) / file.path).parquet() as opened:
            found[file.partition] = opened.read()["n"].to_pylist()
    texts = [None if day is None else f"2026-03-0{day}" for day in days]
    assert found == {("a/b", text): [n for n in range(3) if texts[n] == text] for text in texts}
