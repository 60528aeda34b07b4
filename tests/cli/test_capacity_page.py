"""The page on capacity has the figures of the page on benchmarks."""

from __future__ import annotations

import re

import pytest

from tests.house.sources import ROOT

CAPACITY = (ROOT / "docs" / "capacity.md").read_text(encoding="utf-8")
BENCHMARKS = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
#: A row of the page on capacity -> the row of the table of figures, and the number of digits shown.
FIGURES = {
    "memory of an idle connection": ("idle connection: memory", 1),
    "memory of an idle connection with a session and a link": ("idle connection with session and link: memory", 1),
    "processor time of 5,000 idle connections": ("5,000 idle (connection): CPU", 2),
}


def cells(page: str, row: str) -> list[str]:
    """Return the cells behind the first cell of a row."""
    found = re.search(rf"^\| {re.escape(row)} +\|(.*)\|$", page, re.MULTILINE)
    assert found is not None, row
    return [cell.strip() for cell in found[1].split("|")]


def number(text: str) -> float:
    found = re.search(r"[\d,.]+", text)
    assert found is not None, text
    return float(found[0].replace(",", ""))


@pytest.mark.parametrize("row", FIGURES)
def test_a_figure_is_the_median_of_the_benchmark(row: str) -> None:
    figure, digits = FIGURES[row]
    assert number(cells(CAPACITY, row)[0]) == round(number(cells(BENCHMARKS, figure)[1]), digits)


@pytest.mark.parametrize(("row", "load"), [("100 B, 1000 under way", "100 B"), ("10 kB, 1000 under way", "10 kB")])
def test_a_message_costs_what_the_benchmark_measured(row: str, load: str) -> None:
    cost, rate = cells(CAPACITY, row)
    subject, measured, _, measured_rate, *_ = cells(BENCHMARKS, load)
    assert subject == "router"
    assert number(cost) == pytest.approx(number(measured), abs=0.06)
    assert number(rate) == pytest.approx(number(measured_rate), abs=600)
