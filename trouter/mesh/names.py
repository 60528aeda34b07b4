"""The id of another router in a log line or a dump, where it must be harmless."""

from __future__ import annotations

from typing import Final

from trouter._text import escape_unprintable

_MAX_CHARACTERS: Final = 128
#: Characters that end a word, or quote or escape one, in the lines of the log.
_SPECIAL: Final = "\\ ='\""


def shown(router: str) -> str:
    """Return the id as one printable word, cut and with special characters escaped: it cannot forge its line."""
    return escape_unprintable(router[:_MAX_CHARACTERS], _SPECIAL)
