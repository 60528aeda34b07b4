"""A module marked `own_process` runs in a child of pytest, whose reports arrive: passed, failed, skipped, and dead."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.house.sources import ROOT
from tests.routers import DEADLINE_S

HOOKS = "from tests.own_process import pytest_addoption, pytest_collection_modifyitems, pytest_configure\n"
SETTINGS = "[pytest]\nmarkers = own_process\naddopts = -rA --import-mode=importlib\n"
BESIDE = "import sys\n\ndef test_beside():\n    sys.started_once = True\n"
MODULE = """
import os, sys, pytest

pytestmark = pytest.mark.own_process

def test_passes():
    assert not hasattr(sys, "started_once")

def test_fails():
    assert "mine" == "yours"

@pytest.mark.skipif(True, reason="there is no moon")
def test_is_skipped():
    raise AssertionError

@pytest.fixture
def falls():
    yield
    raise RuntimeError("fell at the end")

def test_fails_at_its_end(falls):
    pass

def test_dies():
    os._exit(7)

def test_comes_after():
    pass
"""
EXPECTED = {
    "test_beside": "PASSED",
    "test_passes": "PASSED",
    "test_fails": "FAILED",
    "test_fails_at_its_end": "FAILED",
    "test_dies": "FAILED",
    "test_comes_after": "FAILED",
}


def test_the_reports_of_the_child_arrive(tmp_path: Path) -> None:
    for name, text in {"conftest.py": HOOKS, "pytest.ini": SETTINGS, "test_a.py": BESIDE, "test_b.py": MODULE}.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    found = {name: outcome for outcome, name in re.findall(r"^(\w+) \S*::(\w+)", done.stdout, re.MULTILINE)}
    assert found == EXPECTED, done.stdout + done.stderr
    assert "there is no moon" in done.stdout
    assert "fell at the end" in done.stdout
    assert "AssertionError: assert 'mine' == 'yours'" in done.stdout
    assert "ended with status 7 before the end of this test" in done.stdout
