"""The garbage collector is held back while a configuration is read, and only then."""

from __future__ import annotations

import gc

import pytest

from trouter.config import ConfigurationError, load
from trouter.config.collector import held_back


def test_the_collector_is_held_back_within_and_works_afterwards() -> None:
    assert gc.isenabled()
    with held_back():
        assert not gc.isenabled()
        with held_back():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_whoever_runs_without_one_goes_on_without_one() -> None:
    gc.disable()
    try:
        with held_back():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_configuration_that_cannot_be_used_leaves_it_working() -> None:
    with pytest.raises(ConfigurationError):
        load(text="{")
    assert gc.isenabled()
