"""The notebook of the examples: its cells run in their order, and draw what the tables have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from pipeline.tests.attacked import noisy_day
from pipeline.tests.generate import Scribe
from pipeline.tests.stored import NOON, a_day, metered, store
from tests.house.sources import ROOT
from trouter_pipeline.compact import compact, here

pytestmark = pytest.mark.one_twin

NOTEBOOK = json.loads((ROOT / "examples" / "pipeline" / "pictures.ipynb").read_text(encoding="utf-8"))
PLOTS = ("metering-plot", "attack-plot", "topology-plot")


@pytest.fixture
def pyplot() -> Iterator[Any]:
    """Give pyplot without windows, as before the test afterwards."""
    from matplotlib import pyplot as plt

    with mpl.rc_context():
        plt.switch_backend("agg")
        yield plt
        plt.close("all")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the tables of a day, and records of logins with an attack among them."""
    folder = tmp_path_factory.mktemp("pictures")
    scribe = Scribe(folder / "in")
    scribe.write_all(noisy_day(1), 5000)
    scribe.stop()
    compact([folder / "in"], folder / "root", run=here)
    a_day(folder / "root", hostile="$\\frac{1}{0}$ <b>")
    return folder / "root"


def run(root: Path, monkeypatch: pytest.MonkeyPatch, **variables: Any) -> dict[str, Any]:
    """Run the cells of code in one process, as Jupyter does; variables replace those of the first cell."""
    monkeypatch.setenv("ROOT", str(root))
    names: dict[str, Any] = {}
    for cell in NOTEBOOK["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
            names.update(variables)
            if cell["id"] in PLOTS:
                names[cell["id"]] = names["figure"]
    return names


def test_the_notebook_is_complete_and_has_no_outputs() -> None:
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    names = [cell["id"] for cell in NOTEBOOK["cells"]]
    assert len(set(names)) == len(names)
    assert set(PLOTS) <= set(names)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in NOTEBOOK["cells"])


def test_every_cell_draws_what_the_tables_have(root: Path, monkeypatch: pytest.MonkeyPatch, pyplot: Any) -> None:
    names = run(root, monkeypatch)
    drawn = {name: names[name] for name in PLOTS}
    assert len({id(figure) for figure in drawn.values()}) == len(pyplot.get_fignums()) == 3
    for figure in drawn.values():
        figure.canvas.draw()
    lines = drawn["metering-plot"].axes[0].get_lines()
    assert {sum(line.get_ydata()) for line in lines} > {sum(row["msgs"] for row in metered("globex", msgs=300))}
    alerts = {text.get_text() for text in drawn["attack-plot"].axes[0].get_legend().get_texts()}
    assert {"failed", "successful", "brute-force: $\\frac{1}{0}$ <b> from 192.0.2.9"} <= alerts
    network, history = drawn["topology-plot"].axes
    assert {text.get_text() for text in network.texts} == {"A", "C", "$\\frac{1}{0}$ <b>"}
    assert [len(each.get_segments()) for each in history.collections] == [10, 1]


def test_a_version_and_a_range_are_chosen(root: Path, monkeypatch: pytest.MonkeyPatch, pyplot: Any) -> None:
    store(root, "meter", metered("later", hours=2))
    (vhosts,) = {tuple(row[0] for row in run(root, monkeypatch)["metered"])}
    assert vhosts == ("later",)
    names = run(root, monkeypatch, SINCE=NOON + timedelta(hours=1), UNTIL=NOON + timedelta(hours=1))
    assert [row[1:3] for row in names["metered"]] == [([NOON + timedelta(hours=1)], [101])]
