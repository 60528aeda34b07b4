"""The page about metrics names every metric, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from manual import metrics
from tests.http.sites import NO_TOTALS
from trouter.columns.column import GAUGE
from trouter.http import Figures, MemoryOwner
from trouter.http.exposition import exposition_of
from trouter.http.metrics import DeclaredSeries, exposition, families

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_every_series_is_on_the_page_with_its_type_and_labels_and_no_other() -> None:
    text = exposition(Figures(totals=NO_TOTALS, version="1", twin="compiled", uptime_s=0)).decode()
    types = dict(re.findall(r"^# TYPE ((?:qdr|trouter)_\w+) (\w+)$", text, re.MULTILINE))
    rows = dict(re.findall(r"^\| `((?:qdr|trouter)_\w+)` \| (\w+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert rows == types


def test_the_tables_of_the_page_are_those_of_the_declarations() -> None:
    assert PAGE.read_text(encoding="utf-8") == metrics.page()


def test_one_row_puts_a_series_on_the_page_of_figures_and_into_the_manual() -> None:
    row: DeclaredSeries[int] = DeclaredSeries(
        "x_colour", GAUGE, "Colours in use.", lambda count: [(("red",), count)], ("name",)
    )
    text = exposition_of(families([row], 7)).decode()
    assert text == '# HELP x_colour Colours in use.\n# TYPE x_colour gauge\nx_colour{name="red"} 7.0\n'
    assert metrics.row_of(row) == "| `x_colour` | gauge | `name` | colours in use |\n"


def test_the_allocator_gauges_have_the_form_that_is_on_the_page() -> None:
    owners = [MemoryOwner("qdr_link_t", 100, 1)]
    text = exposition(Figures(totals=NO_TOTALS, version="1", twin="compiled", uptime_s=0, memory=owners)).decode()
    assert "`qdr_allocator_TYPE:FIELD_bytes`" in PAGE.read_text(encoding="utf-8")
    assert len(re.findall(r"^# TYPE qdr_allocator_qdr_link_t:\w+_bytes gauge$", text, re.MULTILINE)) == 5
