"""Read landed tables with other tools than the pipeline's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable


def read_with_duckdb(root: Path, name: str, what: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table as DuckDB reads them, without any code of trouter."""
    table = duckdb.from_arrow(DeltaTable(str(root / "tables" / name)).to_pyarrow_dataset())
    return table.aggregate(what).fetchall() if "count(" in what else table.project(what).fetchall()
