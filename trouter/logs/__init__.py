"""Log lines as Qpid Dispatch writes them (docs/logging.md), over the standard `logging`.

Code logs to `trouter.<MODULE>`, for instance `logging.getLogger("trouter.SERVER")`, also available as `of("SERVER")`.
One handler at `trouter` applies the settings of the record's module: each module has its own levels and output, and one
without settings follows DEFAULT. `book` keeps the last lines and counts all events. A line that cannot be written is
counted and dropped: logging never stops the router.
"""

from __future__ import annotations

from trouter.logs.book import LogBook, LogLine, book
from trouter.logs.handler import (
    LogHandler,
    Prepared,
    always,
    apply,
    configure,
    give,
    name_worker,
    prepare,
    reopen,
    why_it_ends,
)
from trouter.logs.levels import MODULES, NAMES, NOTICE, ROOT, TRACE
from trouter.logs.loggers import of

__all__ = [
    "MODULES", "NAMES", "NOTICE", "ROOT", "TRACE", "LogBook", "LogHandler", "LogLine", "Prepared", "always", "apply",
    "book", "configure", "give", "name_worker", "of", "prepare", "reopen", "why_it_ends",
]  # fmt: skip
