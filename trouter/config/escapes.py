"""Backslashes in values without quotes: the escapes of JSON, as Qpid Dispatch reads them."""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

#: An escape of JSON, with the two of a character outside the first plane as one; or a backslash that begins none.
_ESCAPE: Final = re.compile(
    r"\\(?:[\"\\/bfnrt]|u[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}|u(?![Dd][89A-Fa-f])[0-9A-Fa-f]{4})|\\"
)


class Unescaped(NamedTuple):
    """A value with its escapes applied.

    unknown: the offset of the first backslash that begins no escape of JSON and was taken literally, -1 without one.
    control: the offset of the first escape for a control character, -1 without one.
    """

    text: str
    unknown: int = -1
    control: int = -1


def unescaped(text: str) -> Unescaped:
    """Return a value without quotes as it counts."""
    if "\\" not in text:
        return Unescaped(text)
    unknown = control = -1
    pieces: list[str] = []
    done = 0
    for match in _ESCAPE.finditer(text):
        literal = match[0] == "\\"
        char = "\\" if literal else str(json.loads(f'"{match[0]}"'))
        if literal and unknown < 0:
            unknown = match.start()
        elif control < 0 and char < " ":
            control = match.start()
        pieces += [text[done : match.start()], char]
        done = match.end()
    return Unescaped("".join([*pieces, text[done:]]), unknown, control)
