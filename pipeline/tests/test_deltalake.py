"""What `deltalake` does and does not do, as far as tables depend on it: each workaround in `delta` has its reason here.

A test that fails because a later version does better says which workaround may go.
"""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction

pytestmark = pytest.mark.one_twin

DAY = date(2026, 3, 1)
ROWS = pa.table({"value": [1], "name": ["x"], "date": pa.array([DAY], pa.date32())})
#: Without it, deltalake looks for itself whether a commit may follow one that it has not seen.
AT_ONCE = CommitProperties(max_commit_retries=0)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    DeltaTable.create(str(tmp_path), schema=Schema.from_arrow(ROWS.schema), partition_by=["date"])
    return str(tmp_path)


def placed(uri: str, name: str, statistics: dict[str, Any] | None = None) -> AddAction:
    """Write a file of the day, which no version has yet."""
    path = Path(uri, f"date={DAY}", name)
    path.parent.mkdir(exist_ok=True)
    pq.write_table(ROWS.drop_columns(["date"]), path)
    told = json.dumps({"numRecords": 1, **(statistics or {})})
    return AddAction(f"date={DAY}/{name}", path.stat().st_size, {"date": str(DAY)}, 0, True, stats=told)


def add(table: DeltaTable, action: AddAction, properties: CommitProperties | None = None, **other: Any) -> None:
    mode, schema = other.get("mode", "append"), other.get("schema", table.schema())
    table.create_write_transaction([action], mode, schema, ["date"], commit_properties=properties)


def test_files_are_added_twice_by_two_writers_that_both_saw_a_day_empty(uri: str) -> None:
    """So `Folder.commit` takes no retries, and asks itself whether the versions that came between exclude its own."""
    for name, table in [(name, DeltaTable(uri)) for name in ("one", "other")]:
        add(table, placed(uri, name))
    assert DeltaTable(uri).to_pyarrow_table().num_rows == 2


def test_rows_that_replace_a_day_are_refused_if_others_came(uri: str) -> None:
    """`write_deltalake` does that by itself; it does not have the disk hold the files before the commit names them."""
    one, other = DeltaTable(uri), DeltaTable(uri)
    write_deltalake(one, ROWS, mode="overwrite", predicate=f"date = '{DAY}'")
    with pytest.raises(CommitFailedError):
        write_deltalake(other, ROWS, mode="overwrite", predicate=f"date = '{DAY}'")
    assert DeltaTable(uri).to_pyarrow_table().num_rows == 1


def test_a_transaction_of_an_application_is_committed_again(uri: str) -> None:
    """So `Folder.commit` looks for the number of the batch first."""
    batch = CommitProperties(app_transactions=[Transaction("stream", 7)])
    for _ in range(2):
        write_deltalake(uri, ROWS, mode="append", commit_properties=batch)
    table = DeltaTable(uri)
    assert table.transaction_version("stream") == 7
    assert table.to_pyarrow_table().num_rows == 2


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_commit_without_retries_is_a_compare_and_set(uri: str, mode: str) -> None:
    stale = DeltaTable(uri)
    add(DeltaTable(uri), placed(uri, "first"))
    with pytest.raises(CommitFailedError):
        add(stale, placed(uri, "second"), AT_ONCE, mode=mode)
    assert len(DeltaTable(uri).file_uris()) == 1


def test_an_overwrite_changes_columns_and_files_in_one_version(uri: str) -> None:
    add(DeltaTable(uri), placed(uri, "first"))
    columns = Schema.from_arrow(pa.schema([*ROWS.schema, ("more", pa.int64())]))
    table = DeltaTable(uri)
    add(table, placed(uri, "second"), AT_ONCE, mode="overwrite", schema=columns)
    changed = DeltaTable(uri)
    assert changed.version() == 2
    assert [Path(each).name for each in changed.file_uris()] == ["second"]
    assert changed.schema() == columns


def test_a_transaction_is_kept_by_a_checkpoint_and_the_metadata_of_a_commit_is_not(uri: str) -> None:
    """So the state of a job is found by a transaction (see `state`)."""
    told = CommitProperties(custom_metadata={"job": "x"}, app_transactions=[Transaction("state", 2**62 + 1)])
    write_deltalake(uri, ROWS, mode="append", commit_properties=told)
    write_deltalake(uri, ROWS, mode="append")
    table = DeltaTable(uri)
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 seconds"})
    table.create_checkpoint()
    table.cleanup_metadata()
    assert len(list(Path(uri, "_delta_log").glob("*.json"))) == 1
    table = DeltaTable(uri)
    assert table.transaction_version("state") == 2**62 + 1
    assert not any("job" in each for each in table.history())


def test_statistics_of_only_some_columns_hide_rows(uri: str) -> None:
    """So a file has statistics of all its columns or of none (see `statistics`)."""
    some = {"minValues": {"value": 1}, "maxValues": {"value": 1}, "nullCount": {"value": 0}}
    add(DeltaTable(uri), placed(uri, "some", some))
    wanted = (pc.field("value") > 0) & (pc.field("name") == "x")
    assert DeltaTable(uri).to_pyarrow_table().num_rows == 1
    assert DeltaTable(uri).to_pyarrow_dataset().to_table(filter=wanted).num_rows == 0
    add(DeltaTable(uri), placed(uri, "none"))
    assert DeltaTable(uri).to_pyarrow_dataset().to_table(filter=wanted).num_rows == 1


def test_its_statistics_of_exact_decimals_hide_rows(tmp_path: Path) -> None:
    """So `Folder.optimize` writes files itself."""
    price = Decimal("12345678901234567890.123456789012345678")
    rows = pa.table({"value": [1], "price": pa.array([price], pa.decimal128(38, 18))})
    write_deltalake(str(tmp_path), rows)
    wanted = (pc.field("price") == pa.scalar(price, pa.decimal128(38, 18))) & (pc.field("value") > 0)
    assert DeltaTable(str(tmp_path)).to_pyarrow_table().equals(rows)
    assert DeltaTable(str(tmp_path)).to_pyarrow_dataset().to_table(filter=wanted).num_rows == 0
