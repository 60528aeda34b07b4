"""The id of another router in a log line or a dump, where it must be harmless."""

from __future__ import annotations

from typing import Final

_MAX_CHARACTERS: Final = 128
_ESCAPED: Final = str.maketrans({character: f"\\x{ord(character):02x}" for character in "\\ ='\""})


def shown(router: str) -> str:
    """Return the id as one word: cut, without quotes, blanks and ``=``, so that it cannot forge parts of its line."""
    return router[:_MAX_CHARACTERS].translate(_ESCAPED)
