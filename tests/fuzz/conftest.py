"""What the tests of fuzz targets share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def quiet() -> Iterator[None]:
    """Silence the log, which has only faults of the inputs here."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)
