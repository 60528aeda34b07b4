"""Loggers that count. Each module has one, however code obtained it.

Rooms that do not import this one call `logging.getLogger("trouter.SERVER")`, perhaps before this module is imported, so
an existing logger becomes a counting one in place. A check of `isEnabledFor` is not counted; a call is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, cast

from trouter.logs.book import book
from trouter.logs.levels import MODULES, ROOT, known_number

#: Other modules that log under their own name; they follow DEFAULT.
OTHERS: Final = ("PLUGIN",)


def _counting(level: int) -> Callable[..., None]:
    """Return a method that counts a call at ``level``, and logs it if that is enabled."""

    def write(self: CountingLogger, msg: object, *args: object, **options: Any) -> None:
        self.tally[level] += 1
        if self.isEnabledFor(level):
            self._log(level, msg, args, **_one_frame_up(options))

    return write


class CountingLogger(logging.Logger):
    """Counts every call by its level in `tally`, then logs like any logger."""

    tally: dict[int, int]

    # Each calls `_log` directly, like the overridden methods; `stacklevel` allows for the additional frame.
    debug = _counting(logging.DEBUG)
    info = _counting(logging.INFO)
    warning = _counting(logging.WARNING)
    error = _counting(logging.ERROR)
    critical = _counting(logging.CRITICAL)

    def log(self, level: int, msg: object, *args: object, **options: Any) -> None:
        """Count the call, and log it if its level is enabled."""
        self.tally[known_number(level)] += 1
        if self.isEnabledFor(level):
            self._log(level, msg, args, **_one_frame_up(options))

    def callHandlers(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """Pass a record to the handlers; one with a bug, as of a plugin, loses a line, and ends nothing."""
        try:
            super().callHandlers(record)
        except Exception:  # noqa: BLE001 - to log it would call the handler again
            book.lost += 1


def _one_frame_up(options: dict[str, Any]) -> dict[str, Any]:
    options["stacklevel"] = options.get("stacklevel", 1) + 1
    return options


def of(module: str) -> logging.Logger:
    """Return the logger of one module, such as `SERVER`."""
    logger = logging.getLogger(f"{ROOT}.{module}")
    if not isinstance(logger, CountingLogger):
        logger.__class__ = CountingLogger
        cast("CountingLogger", logger).tally = book.tally_of(module)
    return logger


def adopt() -> None:
    """Turn every existing logger below `trouter` into a counting one."""
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if name.startswith(f"{ROOT}.") and isinstance(logger, logging.Logger):
            of(name.removeprefix(f"{ROOT}."))


for _module in (*MODULES, *OTHERS):
    of(_module)
