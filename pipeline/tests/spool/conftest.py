from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trouter_pipeline.spool import Spool

Fill = Callable[..., None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def spool(folder: Path) -> Iterator[Spool]:
    with Spool.open(folder, address="orders") as opened:
        yield opened
