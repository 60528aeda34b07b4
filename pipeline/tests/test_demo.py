"""The demonstration finds what it plants, and empties no other folder."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from trouter_pipeline.needs import missing

pytestmark = pytest.mark.one_twin

DEMO = ROOT / "examples" / "pipeline" / "demo.py"


def demonstrate(folder: Path) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "plugins")])
    return subprocess.run(
        [sys.executable, str(DEMO), str(folder)],
        capture_output=True, text=True, check=False, cwd=folder.parent, env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip


def test_traffic_without_a_router_ends_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"amqp://127.0.0.1:{closed.getsockname()[1]}"
        done = subprocess.run(
            [sys.executable, str(DEMO.with_name("traffic.py")), url, str(tmp_path / "secret")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"no router answers at {url}: start one")
    assert done.stderr.count("\n") == 1


def test_a_folder_of_another_owner_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis").touch()
    done = demonstrate(folder)
    assert done.returncode == 1
    assert f"{folder} is not empty, and no demonstration made it" in done.stderr
    assert (folder / "thesis").exists()


@pytest.mark.slow
@pytest.mark.pipeline_long
def test_the_attack_and_the_fraud_are_found_and_the_report_is_ready(tmp_path: Path) -> None:
    if needs := missing():
        pytest.skip("; ".join(need.what for need in needs))
    done = demonstrate(tmp_path / "demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "25 guesses of a password, and then the right one: found" in done.stdout
    assert "with card 4000-0000-0000-0002: found" in done.stdout
    made = r"version 1 of the meter, by trouter meter, version 1; messages: (\d+) by DuckDB, \1 by polars"
    assert re.search(made, done.stdout), done.stdout
    report = re.search(r"the report is in (\S+)", done.stdout)
    assert report is not None
    page = Path(report[1]).read_text(encoding="utf-8")
    for word in ("acme", "globex", "initech", "brute-force", "4000-0000-0000-0002"):
        assert word in page
