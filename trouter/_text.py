"""Text of strangers as text that is safe to show, for every room: it stays on its line and controls no terminal.

Bounds of length are those of the place that shows the text. ``wire/value_text.py`` shows values of AMQP.
"""

from __future__ import annotations

import re
from typing import Final

#: Control characters, the marks that turn the direction of writing, and halves of a character.
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def escape_unprintable(text: str, special: str = "") -> str:
    """Return ``text`` with an escape for each character that does not print, and for those in ``special``."""
    if text.isprintable() and not any(each in text for each in special):
        return text
    return "".join(_escape(each) if each in special or not each.isprintable() else each for each in text)


def escape_controls(text: str) -> str:
    """Return ``text`` with an escape for each character that a terminal would obey or a table would break at.

    Others that do not print stay, because some scripts need them to join or part their letters.
    """
    return _CONTROLS.sub(lambda found: _escape(found[0]), text)


def visible_bytes(octets: bytes, special: bytes = b"") -> str:
    r"""Return ``octets`` as ASCII, with \xhh for those that do not print and those in ``special``."""
    return "".join(chr(each) if 32 <= each < 127 and each not in special else f"\\x{each:02x}" for each in octets)


def _escape(character: str) -> str:
    r"""Return the escape of a character as in Python: \n, \x1b, \u202e."""
    if character.isascii() and character.isprintable():
        return f"\\x{ord(character):02x}"
    return character.encode("unicode_escape").decode()
