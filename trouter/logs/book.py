"""What is remembered of the log: the last lines, for GET-LOG, and how many events each module had, for logStats.

Lines are remembered when their level is enabled, whether or not they could be written; events are counted always.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from trouter.logs.levels import DEFAULT, MODULES, NAMES

#: Lines remembered.
KEPT: Final = 1000
#: Octets of a text remembered.
MAX_TEXT_BYTES: Final = 2047


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: who said it, how grave it is, the text on one line, where in the source, seconds since 1970."""

    module: str
    level: str
    text: str
    file: str
    line: int
    seconds: float


class LogBook:
    """The last lines and the counts of one process."""

    def __init__(self) -> None:
        #: Lines that could not be written, to whatever output, since the start.
        self.lost = 0
        self._entries: deque[Entry] = deque(maxlen=KEPT)
        self._tallies = {module: dict.fromkeys(sorted(NAMES), 0) for module in MODULES}

    def keep(self, entry: Entry) -> None:
        """Remember a line; the oldest goes when there are too many."""
        octets = entry.text.encode("utf-8", "backslashreplace")
        if len(octets) > MAX_TEXT_BYTES:
            entry = replace(entry, text=octets[:MAX_TEXT_BYTES].decode("utf-8", "ignore"))
        self._entries.append(entry)

    def recent(self, limit: int = 0, module: str = "") -> list[Entry]:
        """Return the newest `limit` lines, all if it is not above 0, oldest first; of one module, if it is named."""
        found = [entry for entry in self._entries if not module or entry.module == module]
        return found[-limit:] if limit > 0 else found

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the events since the start by module and level; modules without an own name count as DEFAULT."""
        return {
            module: {NAMES[number]: count for number, count in tally.items()} for module, tally in self._tallies.items()
        }

    def tally_of(self, module: str) -> dict[int, int]:
        """Return the counts of one module by the number of the level, for its logger to count in."""
        return self._tallies.get(module, self._tallies[DEFAULT])


#: The book of this process.
book: Final = LogBook()
