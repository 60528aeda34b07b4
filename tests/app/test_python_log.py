"""The log module PYTHON: warnings and errors of the interpreter."""

from __future__ import annotations

import logging
import warnings

import pytest

from trouter.app.python_log import python_logged


class Failing:
    """An object whose finaliser fails."""

    def __del__(self) -> None:
        raise ValueError("too late")


def test_a_warning_is_a_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "trouter.PYTHON"), python_logged():
        warnings.simplefilter("always")
        warnings.warn("old ways", stacklevel=1)
    (line,) = caplog.messages
    assert line.startswith("UserWarning: old ways (")


def test_an_exception_that_nothing_catches_is_a_line_with_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "trouter.PYTHON"), python_logged():
        Failing()
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "too late"
