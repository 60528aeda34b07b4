"""The memory of the log: the last lines, for GET-LOG, and counts of events by module, for logStats.

Lines are kept if their level is enabled, even if they could not be written; events are always counted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from trouter.logs.levels import DEFAULT, MODULES, NAMES

#: Lines kept.
KEPT: Final = 1000
#: Bytes kept of a text.
MAX_TEXT_BYTES: Final = 2047


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line: module, level, text on one line, place in the source, and seconds since 1970."""

    module: str
    level: str
    text: str
    file: str
    line: int
    seconds: float


class LogBook:
    """The last lines and the counts of one process."""

    def __init__(self) -> None:
        #: Lines that some output could not write, since the start.
        self.lost = 0
        self._entries: deque[LogLine] = deque(maxlen=KEPT)
        self._tallies = {module: dict.fromkeys(sorted(NAMES), 0) for module in MODULES}

    def keep_line(self, entry: LogLine) -> None:
        """Keep a line, and drop the oldest above KEPT."""
        octets = entry.text.encode("utf-8", "backslashreplace")
        if len(octets) > MAX_TEXT_BYTES:
            entry = replace(entry, text=octets[:MAX_TEXT_BYTES].decode("utf-8", "ignore"))
        self._entries.append(entry)

    def recent(self, limit: int = 0, module: str = "") -> list[LogLine]:
        """Return the newest `limit` lines, all if it is 0 or less, oldest first; only those of `module`, if given."""
        found = [entry for entry in self._entries if not module or entry.module == module]
        return found[-limit:] if limit > 0 else found

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the events since the start by module and level; unknown modules count as DEFAULT."""
        return {
            module: {NAMES[number]: count for number, count in tally.items()} for module, tally in self._tallies.items()
        }

    def tally_of(self, module: str) -> dict[int, int]:
        """Return the counts of one module by level number, which its logger changes."""
        return self._tallies.get(module, self._tallies[DEFAULT])


#: The book of this process.
book: Final = LogBook()
