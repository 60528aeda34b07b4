"""Restore the state of logging after each test of the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from trouter import logs


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger(logs.ROOT)
    handlers, level, propagate = root.handlers[:], root.level, root.propagate
    root.handlers.clear()
    root.propagate = True  # so that handlers above get the lines; `configure` turns propagation off
    levels = {name: logger.level for name, logger in trouter_loggers()}
    yield
    for handler in root.handlers[:]:
        root.removeHandler(handler)
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.propagate = propagate
    root.setLevel(level)
    for name, logger in trouter_loggers():
        logger.setLevel(levels.get(name, logging.NOTSET))


def trouter_loggers() -> list[tuple[str, logging.Logger]]:
    known = logging.root.manager.loggerDict.items()
    return [
        (name, logger) for name, logger in known if name.startswith("trouter.") and isinstance(logger, logging.Logger)
    ]
