"""Events as lines: `[timestamp ]MODULE (level) text[ (file:line)]`, or one JSON object.

Text from peers stays on one line and cannot control the terminal. Only a traceback takes more lines; they begin with
blanks, as no other line does, so none of them can pass for an event.
"""

from __future__ import annotations

import json
import logging
import re
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trouter._text import escape_unprintable
from trouter.logs.book import LogLine
from trouter.logs.levels import NAMES, known_number, module_of

DEFAULT_FORMAT: Final = "%Y-%m-%d %H:%M:%S.%%06lu %z"
#: Characters of a text, and of a traceback.
MAX_TEXT: Final = 16384
MAX_TRACEBACK: Final = 32768
CUT: Final = "..."

_PACKAGES: Final = f"{Path(__file__).parents[2]}/"
_IDS: Final = re.compile(r"\[C(\d{1,18})\](?:\[L(\d{1,18})\])?")


@dataclass(frozen=True, slots=True)
class Clock:
    """Zone and format of times; the format is strftime's, with `%%06lu` for the microseconds."""

    zone: Callable[[float], time.struct_time]
    format: str

    def text(self, seconds: float) -> str:
        whole, part = divmod(round(seconds * 1_000_000), 1_000_000)
        return time.strftime(self.format, self.zone(whole)).replace("%06lu", f"{part:06d}")

    def iso(self, seconds: float) -> str:
        """Return the time in ISO 8601."""
        whole, part = divmod(round(seconds * 1_000_000), 1_000_000)
        moment = time.strftime("%Y-%m-%dT%H:%M:%S %z", self.zone(whole))
        return f"{moment[:19]}.{part:06d}{moment[-5:-2]}:{moment[-2:]}"


@dataclass(frozen=True, slots=True)
class Shape:
    """The optional parts of a line."""

    timestamp: bool
    source: bool
    json: bool = False


def entry_of(record: logging.LogRecord) -> LogLine:
    """Return the entry of a record; never raises, whatever its arguments are."""
    try:
        text = record.getMessage()
    except Exception:  # noqa: BLE001  # a bug of the caller must not become one here
        text = f"{record.msg!s} [the arguments do not fit]"
    return LogLine(
        module=module_of(record.name),
        level=NAMES[known_number(record.levelno)],
        text=_cut(escape_unprintable(text[: MAX_TEXT + 1]), MAX_TEXT),
        file=record.pathname.removeprefix(_PACKAGES),
        line=record.lineno,
        seconds=record.created,
    )


def traceback_of(record: logging.LogRecord) -> str:
    """Return the traceback of a record, several lines; "" without one."""
    if not record.exc_info or record.exc_info[1] is None:
        return ""
    lines = "".join(traceback.format_exception(record.exc_info[1])).splitlines()
    return _cut("\n".join(escape_unprintable(line) for line in lines), MAX_TRACEBACK)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - len(CUT)] + CUT


def line_of(entry: LogLine, trace: str, shape: Shape, clock: Clock, worker: int = 0) -> str:
    """Return the line without its line end; ``worker`` is the number of the process, 0 for a router of one process."""
    return (_json if shape.json else _text)(entry, trace, shape, clock, worker)


def _text(entry: LogLine, trace: str, shape: Shape, clock: Clock, worker: int) -> str:
    who = f"[W{worker}] " if worker else ""
    parts = [f"{entry.module} ({entry.level}) {who}{entry.text}"]
    if shape.timestamp:
        parts.insert(0, f"{clock.text(entry.seconds)} ")
    if shape.source:
        parts.append(f" ({entry.file}:{entry.line})")
    parts.extend(f"\n  {line}" for line in trace.splitlines())
    return "".join(parts)


def _json(entry: LogLine, trace: str, shape: Shape, clock: Clock, worker: int) -> str:
    fields: dict[str, object] = {}
    if shape.timestamp:
        fields["ts"] = clock.iso(entry.seconds)
    fields |= {"module": entry.module, "level": entry.level, "text": entry.text}
    if worker:
        fields["worker"] = worker
    if ids := _IDS.match(entry.text):
        fields["connection"] = int(ids[1])
        if ids[2]:
            fields["link"] = int(ids[2])
    if shape.source:
        fields |= {"file": entry.file, "line": entry.line}
    if trace:
        fields["traceback"] = trace
    return json.dumps(fields)
