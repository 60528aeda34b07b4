"""How the id of another router reads within a line of the log or of a dump: it came from the network."""

from __future__ import annotations

from typing import Final

_MAX_CHARACTERS: Final = 128
_ESCAPED: Final = str.maketrans({character: f"\\x{ord(character):02x}" for character in "\\ ='\""})


def shown(router: str) -> str:
    """Return the id as one word: cut, without quotes, blanks and ``=``, so that it cannot write into its line."""
    return router[:_MAX_CHARACTERS].translate(_ESCAPED)
