"""Modules and levels (docs/logging.md), and what the standard `logging` and syslog call them."""

from __future__ import annotations

import logging
import syslog
from bisect import bisect_right
from typing import Final

from trouter.config.entities import LOG_MODULES

TRACE: Final = 5
NOTICE: Final = 25

ROOT: Final = "trouter"
#: What modules follow that have nothing of their own.
DEFAULT: Final = "DEFAULT"
#: These log and are counted, and cannot be configured.
UNCONFIGURABLE: Final = ("MAIN", "DISPLAYNAME")
#: Every module that is counted by its own name.
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
    """Return the number of the level that `number` stands for: itself, or the next level below that has a name."""
    return number if number in NAMES else _ASCENDING[max(bisect_right(_ASCENDING, number) - 1, 0)]


def module_of(logger_name: str) -> str:
    """Return `SERVER` for `trouter.SERVER`."""
    return logger_name.rpartition(".")[2]
