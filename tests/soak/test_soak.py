"""The short form of `make soak`: it detects a leak and nothing else, and its report has it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.soak.figures import Figures, left_over, slope
from tests.soak.network import network
from tests.soak.report import BEGIN, END, main, write_report
from tests.soak.run import soak

HOUR = [second / 3600 for second in range(0, 3600, 5)]


@pytest.mark.slow
async def test_only_the_planted_leak_is_left_over(tmp_path: Path) -> None:
    """The plugin `soak_leak` keeps each request of the attach hook; all other objects must go."""
    for folder in ("routers", "report"):
        (tmp_path / folder).mkdir()
    with network(tmp_path / "routers", ["soak_leak"]) as world:
        figures = await soak(world, tmp_path / "report", minutes=0.05, rate=5.0, looks=3)
    problems = figures.problems()
    assert problems
    assert [each for each in problems if "trouter.hooks.policy.AttachRequest before the first" not in each] == []
    page = tmp_path / "manual.md"
    page.write_text(f"Figures:\n{BEGIN}\n{END}\n")
    assert main([str(tmp_path / "report"), "--into", str(page)]) == 1
    text = page.read_text()
    assert problems[0] in text
    assert "LEFT OVER" in text
    html = (tmp_path / "report" / "soak.html").read_text()
    assert "<svg" in html
    assert problems[0] in html


@pytest.mark.parametrize(
    ("grows", "rises"),
    [
        (lambda hours: 0.0, False),
        (lambda hours: 200.0 * hours, True),
        (lambda hours: 200.0 if hours > 0.4 else 0.0, False),
    ],
    ids=["flat", "a leak", "one step"],
)
@pytest.mark.parametrize("noise", [0.0, 10.0])
def test_a_slope_above_zero_is_a_leak(grows: Callable[[float], float], rises: bool, noise: float) -> None:
    chance = random.Random(7)
    resident = [60_000 + grows(hours) + chance.gauss(0, noise) for hours in HOUR]
    found = slope([hours * 3600 for hours in HOUR], resident)
    assert found.rises == rises
    assert found.low <= found.middle <= found.high


@pytest.mark.parametrize(("stalled", "found"), [(2, 0), (3, 1)])
def test_a_note_about_each_open_link_is_no_leak(stalled: int, found: int) -> None:
    """A machine that is busy leaves the links between routers without credit now and then, and the router notes it."""
    note, link = "trouter.core.watch._StalledLink", "trouter.core.ingress.Ingress"
    assert len(left_over({"A": {link: 2}}, {"A": {link: 2, note: stalled}})) == found


def test_figures_of_an_interrupted_soak_name_the_interruption(tmp_path: Path) -> None:
    about = {
        "trouter": "1", "twin": "compiled", "python": "3", "began": "now", "warm_up_s": 60.0,
        "traffic": ["small"], "churn": ["links"],
    }  # fmt: skip
    rising = [
        {
            "at_s": at_s, "resident": {"A": 60_000_000 + 1000 * at_s}, "cpu_s": {"A": 0.1 * at_s},
            "sent": {}, "received": {"small": 1}, "churned": {}, "interrupted": {"small: ConnectionClosed: lost": 1},
        }
        for at_s in range(0, 1200, 5)
    ]  # fmt: skip
    figures = Figures(about, rising, {"A": {"qdr_link_t": 3}}, {})
    rises, idle, cut = figures.problems()
    assert rises.startswith("The resident memory of router A rises by 3,516 KiB an hour")
    assert idle == "No churn: links."
    assert "was cut" in cut
    assert "| small | 0 | 1 | 1 |" in write_report(figures, tmp_path)
