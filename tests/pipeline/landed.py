"""Landed tables, as whoever lands and whoever reads them see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb


def read_with_duckdb(root: Path, name: str, what: str) -> list[tuple[Any, ...]]:
    """What somebody sees who knows nothing of us."""
    pattern = root / "tables" / name / "data" / "*" / "*" / "*" / "*.parquet"
    return duckdb.execute(f"select {what} from read_parquet(?, hive_partitioning = true)", [str(pattern)]).fetchall()
