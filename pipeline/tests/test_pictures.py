"""The notebook of the examples: its cells run in their order, and draw what the tables have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from pipeline.tests.attacked import login
from pipeline.tests.generate import HOUR, SECOND, START, Scribe
from pipeline.tests.stored import NOON, a_day, metered, store
from tests.house.sources import ROOT
from trouter_pipeline.compact import compact, here
from trouter_pipeline.tables import Table

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
    guesses = [login(START + number * SECOND, "mallory", "192.0.2.9") for number in range(40)]
    scribe.write_all([*guesses, login(START + HOUR, "acme", "192.0.2.1", ok=True)], 20)
    scribe.stop()
    compact([folder / "in"], folder / "root", run=here)
    a_day(folder / "root", hostile="$\\frac{1}{0}$ <b>")
    return folder / "root"


def run(
    root: Path, monkeypatch: pytest.MonkeyPatch, last: str = PLOTS[-1], edits: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run the cells of code up to ``last`` in one process, as Jupyter does, with other values in the first one."""
    monkeypatch.setenv("ROOT", str(root))
    names: dict[str, Any] = {}
    cells = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells):
        source = "".join(cell["source"])
        for name, value in (edits or {}).items() if not number else ():
            source, count = re.subn(rf"^{name} = .*$", f"{name} = {value}", source, flags=re.MULTILINE)
            assert count == 1
        exec(compile(source, cell["id"], "exec"), names)
        if cell["id"] in PLOTS:
            names[cell["id"]] = names["figure"]
        if cell["id"] == last:
            break
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
    former = Table(root, "meter").pinned()
    store(root, "meter", metered("later", hours=2))
    (vhosts,) = {tuple(row[0] for row in run(root, monkeypatch, PLOTS[0])["metered"])}
    assert vhosts == ("later",)
    later = "(datetime(2026, 3, 1, 13, tzinfo=UTC),) * 2"
    names = run(root, monkeypatch, PLOTS[0], {"VERSIONS": str(former), "SINCE, UNTIL": later})
    assert [row[:3] for row in names["metered"]][1:] == [
        ("globex", [NOON + timedelta(hours=1)], [301]),
        ("initech", [NOON + timedelta(hours=1)], [101]),
    ]
