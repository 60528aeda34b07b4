"""Modules and levels (docs/logging.md), and their names in the standard `logging` and in syslog."""

from __future__ import annotations

import logging
import syslog
from bisect import bisect_right
from typing import Final

from trouter.config.entities import LOG_MODULES

TRACE: Final = 5
NOTICE: Final = 25

ROOT: Final = "trouter"
#: The module whose settings the others inherit.
DEFAULT: Final = "DEFAULT"
#: Modules that log and are counted, but cannot be configured.
UNCONFIGURABLE: Final = ("MAIN", "DISPLAYNAME")
#: Modules that are counted under their own name.
MODULES: Final = (*LOG_MODULES, *UNCONFIGURABLE)

NUMBERS: Final = {
    "trace": TRACE,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": NOTICE,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
NAMES: Final = {number: name for name, number in NUMBERS.items()}
SILENT: Final = logging.CRITICAL + 10
PRIORITIES: Final = {
    TRACE: syslog.LOG_DEBUG,
    logging.DEBUG: syslog.LOG_DEBUG,
    logging.INFO: syslog.LOG_INFO,
    NOTICE: syslog.LOG_NOTICE,
    logging.WARNING: syslog.LOG_WARNING,
    logging.ERROR: syslog.LOG_ERR,
    logging.CRITICAL: syslog.LOG_CRIT,
}
_ASCENDING: Final = tuple(sorted(NAMES))

logging.addLevelName(TRACE, "TRACE")
logging.addLevelName(NOTICE, "NOTICE")


def known_number(number: int) -> int:
    """Return the level for `number`: itself, or the next lower named level; the lowest level below all."""
    return number if number in NAMES else _ASCENDING[max(bisect_right(_ASCENDING, number) - 1, 0)]


def module_of(logger_name: str) -> str:
    """Return the last part of a logger's name: `SERVER` for `trouter.SERVER`."""
    return logger_name.rpartition(".")[2]
