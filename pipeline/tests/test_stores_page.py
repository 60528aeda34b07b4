"""The manual's page on object stores: its walk as it is printed, and its schemes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pipeline.tests.generate import MINUTE, START, Ledger, Scribe, traffic
from pipeline.tests.stores import running
from pipeline.tests.test_land import fill, letter
from tests.house.sources import ROOT
from tests.walks import Shell, steps_in
from trouter_pipeline.places import SCHEMES

PAGE = (ROOT / "docs" / "object-stores.md").read_text(encoding="utf-8")
STEPS = steps_in(PAGE)
#: Seconds that only a hang takes, also where Spark takes a minute to start.
SPARK_S = 600.0


def test_the_page_names_every_scheme_with_its_variables() -> None:
    table = PAGE.partition("| URI |")[2].partition("\n\n")[0]
    for scheme, prefix in SCHEMES.items():
        assert re.search(rf"`{scheme}s?://.*`{prefix}\.\.\.`", table), scheme


@pytest.mark.slow
def test_the_walk_works_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scribe = Scribe(tmp_path / "records")
    ledger = Ledger("QDR.A", 1)
    scribe.write_all(traffic(ledger, seed=1, end=START + 30 * MINUTE, connections=6), 100)
    scribe.stop()
    fill(tmp_path / "spool", "orders", *(letter(f"m{n}") for n in range(3)))
    with running() as store:
        shell = Shell(tmp_path, ("5000",), brings=(), deadline_s=SPARK_S)
        shell.ports["5000"] = str(store.port)
        shell.walk(STEPS)
        monkeypatch.chdir(tmp_path)
        (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
        names: dict[str, Any] = {}
        exec(code.replace("print(", "found = ("), names)
        assert names["found"]["msgs"].sum() == ledger.total()
        assert store.get("root/report.html")
