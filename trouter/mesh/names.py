"""The id of another router in a log line or a dump, where it must be harmless."""

from __future__ import annotations

from typing import Final

_MAX_CHARACTERS: Final = 128
#: Characters that end a word, or quote or escape one, in the lines of the log.
_SPECIAL: Final = frozenset("\\ ='\"")


def shown(router: str) -> str:
    """Return the id as one printable word, cut and with special characters escaped: it cannot forge its line."""
    return "".join(
        character if character.isprintable() and character not in _SPECIAL else _escaped(ord(character))
        for character in router[:_MAX_CHARACTERS]
    )


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
