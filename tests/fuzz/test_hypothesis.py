"""Every fuzz target holds for inputs that Hypothesis makes; `make fuzz-properties` tries many."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, find, given, settings

from fuzz import run
from trouter.testing.fuzz import FuzzTarget, values
from trouter.testing.fuzz.strategies import inputs

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.fuzz
@pytest.mark.parametrize("name", run.targets())
def test_a_target_holds_for_any_input(name: str) -> None:
    target = run.load(name)

    @settings(suppress_health_check=list(HealthCheck))
    @given(inputs(target))
    def holds(data: bytes) -> None:
        target.check(data)

    holds()


def test_an_input_that_fails_is_found_and_made_small(tmp_path: Path) -> None:
    (tmp_path / "codec").mkdir()
    (tmp_path / "codec" / "one").write_bytes(bytes.fromhex("c0080343a1036162634055"))
    target = FuzzTarget("codec", lambda data: None, tmp_path / "codec", values)
    found = find(inputs(target), lambda data: data.count(b"abc") > 1)
    assert found.count(b"abc") == 2
    assert len(found) < 30
