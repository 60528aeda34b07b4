"""Loggers that count. Every module's logger is one, however and whenever others came by it.

Code in rooms that know nothing of this one says `logging.getLogger("trouter.SERVER")`, maybe before this module was
imported, so a logger that exists becomes a counting one in place. A guard (`isEnabledFor`) is no event; a call is.
"""

from __future__ import annotations

import logging
from typing import Any, Final, cast

from trouter.logs.book import book
from trouter.logs.levels import MODULES, ROOT, known_number

#: Modules that log under their own name and follow DEFAULT.
OTHERS: Final = ("PLUGIN",)


class CountingLogger(logging.Logger):
    """Counts every call by its level in `tally`, then does what any logger does."""

    tally: dict[int, int]

    # Each goes straight to `_log`, as the overridden ones do; the one frame more is told in `stacklevel`.

    def debug(self, msg: object, *args: object, **options: Any) -> None:
        """Count, and log if enabled."""
        self.tally[logging.DEBUG] += 1
        if self.isEnabledFor(logging.DEBUG):
            self._log(logging.DEBUG, msg, args, **_one_frame_up(options))

    def info(self, msg: object, *args: object, **options: Any) -> None:
        """Count, and log if enabled."""
        self.tally[logging.INFO] += 1
        if self.isEnabledFor(logging.INFO):
            self._log(logging.INFO, msg, args, **_one_frame_up(options))

    def warning(self, msg: object, *args: object, **options: Any) -> None:
        """Count, and log if enabled."""
        self.tally[logging.WARNING] += 1
        if self.isEnabledFor(logging.WARNING):
            self._log(logging.WARNING, msg, args, **_one_frame_up(options))

    def error(self, msg: object, *args: object, **options: Any) -> None:
        """Count, and log if enabled."""
        self.tally[logging.ERROR] += 1
        if self.isEnabledFor(logging.ERROR):
            self._log(logging.ERROR, msg, args, **_one_frame_up(options))

    def critical(self, msg: object, *args: object, **options: Any) -> None:
        """Count, and log if enabled."""
        self.tally[logging.CRITICAL] += 1
        if self.isEnabledFor(logging.CRITICAL):
            self._log(logging.CRITICAL, msg, args, **_one_frame_up(options))

    def log(self, level: int, msg: object, *args: object, **options: Any) -> None:
        """Count, and log if enabled."""
        self.tally[known_number(level)] += 1
        if self.isEnabledFor(level):
            self._log(level, msg, args, **_one_frame_up(options))


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
    """Make every logger of ours that exists by now a counting one."""
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if name.startswith(f"{ROOT}.") and isinstance(logger, logging.Logger):
            of(name.removeprefix(f"{ROOT}."))


for _module in (*MODULES, *OTHERS):
    of(_module)
