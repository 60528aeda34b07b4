"""Names that docs/glossary.md replaced do not come back."""

from __future__ import annotations

import tokenize
from pathlib import Path

import pytest

from .sources import ROOT, tracked_files

#: The name that was, and the one that is.
REPLACED = {
    "Applicant": "OpenRequest",
    "Ground": "SecurityLayer",
    "Orders": "Sanctions",
    "Parting": "DetachReason",
    "Place": "Endpoint, SourcePosition, SegmentPosition, RowPosition",
    "Places": "FailoverList",
    "Witness": "RouterObserver",
    "told_window": "advertised_window",
}
SOURCES = [path for path in tracked_files() if path.suffix == ".py"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_uses_the_names_of_the_glossary(path: Path) -> None:
    with tokenize.open(path) as source:
        names = {token.string for token in tokenize.generate_tokens(source.readline) if token.type == tokenize.NAME}
    assert {old: new for old, new in REPLACED.items() if old in names} == {}
