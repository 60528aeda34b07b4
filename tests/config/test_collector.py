"""The garbage collector is disabled while a configuration is read, and only then."""

from __future__ import annotations

import gc

import pytest

from trouter.config import ConfigurationError, load
from trouter.config.collector import MANY, held_back


def test_the_collector_is_held_back_within_and_works_afterwards() -> None:
    assert gc.isenabled()
    with held_back():
        assert not gc.isenabled()
        with held_back():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_process_that_runs_without_one_goes_on_without_one() -> None:
    gc.disable()
    try:
        with held_back():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_many_new_objects_are_not_scanned_when_the_collector_resumes() -> None:
    frozen = gc.get_freeze_count()
    with held_back():
        kept: list[list[int]] = [[] for _ in range(2 * MANY)]
    later: list[list[int]] = [[] for _ in range(2 * gc.get_threshold()[0])]
    assert any(one is kept for one in gc.get_objects(generation=2))
    assert not any(one is later for one in gc.get_objects(generation=2))
    assert gc.get_freeze_count() <= frozen


def test_a_broken_configuration_leaves_the_collector_enabled() -> None:
    with pytest.raises(ConfigurationError):
        load(text="{")
    assert gc.isenabled()
