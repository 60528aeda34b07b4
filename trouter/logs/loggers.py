"""Loggers that count. Every module's logger is one, however and whenever others came by it.

Code in rooms that know nothing of this one says `logging.getLogger("trouter.SERVER")`, maybe before this module was
imported, so a logger that exists becomes a counting one in place. A guard (`isEnabledFor`) is no event; a call is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, cast

from trouter.logs.book import book
from trouter.logs.levels import MODULES, ROOT, known_number

#: Modules that log under their own name and follow DEFAULT.
OTHERS: Final = ("PLUGIN",)


def _counting(level: int) -> Callable[..., None]:
    """Return a method that counts a call at ``level``, and logs it if that is enabled."""

    def write(self: CountingLogger, msg: object, *args: object, **options: Any) -> None:
        self.tally[level] += 1
        if self.isEnabledFor(level):
            self._log(level, msg, args, **_one_frame_up(options))

    return write


class CountingLogger(logging.Logger):
    """Counts every call by its level in `tally`, then does what any logger does."""

    tally: dict[int, int]

    # Each goes straight to `_log`, as the overridden ones do; the one frame more is told in `stacklevel`.
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
