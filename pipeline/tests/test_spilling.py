"""The folder in which DuckDB keeps what exceeds its share of the memory."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import pytest

from trouter_pipeline.metering.engines import InProcess

pytestmark = pytest.mark.one_twin


def test_the_folder_is_private_is_not_foretold_and_goes_with_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    first, second = InProcess(), InProcess()
    where = "SELECT current_setting('temp_directory') AS at"
    folders = {Path(each.query(where)["at"][0].as_py()) for each in (first, second)}
    assert folders == set(tmp_path.iterdir())
    assert len(folders) == 2
    for folder in folders:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "spilled").touch()
    del first, second
    gc.collect()
    assert list(tmp_path.iterdir()) == []
