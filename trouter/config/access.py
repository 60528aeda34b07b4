"""The little languages of vhosts and their groups (security.md 4.3 to 4.8)."""

from __future__ import annotations

import re
from typing import Final

from trouter.config.schema import BadValue
from trouter.core.patterns import PatternError, pattern_tokens

#: Both spellings of the user's name; `$${user}` is text.
USER_TOKEN: Final = re.compile(r"(?<!\$)\$\{user\}|(?<!\$)\{user\}")
MIN_FRAME: Final = 512


def names(text: str) -> tuple[str, ...]:
    """Users, separated by commas, each once."""
    return tuple(dict.fromkeys(_entries(text)))


def aliases(text: str) -> tuple[str, ...]:
    """Host names, separated by commas; none may stand there twice."""
    entries = _entries(text)
    for entry in entries:
        if entries.count(entry) > 1:
            raise BadValue(f"the alias '{entry}' stands there twice", "leave one of them out")
    return tuple(entries)


def address_names(text: str) -> tuple[str, ...]:
    """Addresses, whole or ending in `*`, with at most one user token each."""
    entries = _entries(text)
    for entry in entries:
        _at_most_one_token(entry)
    return tuple(dict.fromkeys(entries))


def address_patterns(text: str) -> tuple[str, ...]:
    """Address patterns; the user token is their first or their last token, if any."""
    entries = _entries(text)
    for entry in entries:
        _at_most_one_token(entry)
        try:
            tokens = pattern_tokens(entry)
        except PatternError:
            raise BadValue(f"'{entry}' is not a pattern", "tokens between '.' or '/', e.g. a/*/#") from None
        where = [at for at, token in enumerate(tokens) if USER_TOKEN.search(token)]
        if where and not USER_TOKEN.fullmatch(tokens[where[0]]):
            raise BadValue(f"in '{entry}' the user is only a part of a token", "write e.g. ${user}/a or a/${user}")
        if where and where[0] not in {0, len(tokens) - 1}:
            raise BadValue(f"in '{entry}' the user is in the middle", "write e.g. ${user}/a or a/${user}")
    return tuple(dict.fromkeys(entries))


def frame_size(octets: int) -> int:
    if 0 < octets < MIN_FRAME:
        raise BadValue("is out of range", f"0, or an integer from {MIN_FRAME}")
    return octets


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]


def _at_most_one_token(entry: str) -> None:
    if len(USER_TOKEN.findall(entry)) > 1:
        raise BadValue(f"'{entry}' holds the user's name more than once", "leave one of them out")
