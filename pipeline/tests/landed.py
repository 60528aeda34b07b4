"""Read landed tables with other tools than the pipeline's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb


def read_with_duckdb(root: Path, name: str, what: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table as DuckDB reads them, without any code of trouter."""
    pattern = root / "tables" / name / "data" / "*" / "*" / "*" / "*.parquet"
    return duckdb.execute(f"select {what} from read_parquet(?, hive_partitioning = true)", [str(pattern)]).fetchall()
