"""Parses an entry of `sources` or `targets` before any user's name is known (security.md 4.7).

The user's name stands between two fixed texts and is never parsed: `*` and `${user}` in it are text (R-4.7a).
`docs/policy.md` describes the language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from trouter.config.access import USER_TOKEN
from trouter.core.addresses import plain, strip_location
from trouter.core.patterns import SEPARATORS

WILDCARD: Final = "*"
SEPARATED: Final = tuple(SEPARATORS)
#: The text in every spelling of the user's name, the escaped spelling, and the text that this one means.
_BRACED: Final = "{user}"
_ESCAPED: Final = "$${user}"
_LITERAL: Final = "${user}"
#: The end of an entry's fixed text, in `sources` and `targets`, and in patterns.
_OPEN: Final = re.compile(rf"{USER_TOKEN.pattern}|\*\Z")
_OPEN_IN_PATTERN: Final = re.compile(rf"{USER_TOKEN.pattern}|(?<![^./])[*#](?![^./])")


class EntryError(ValueError):
    """An invalid entry; the text says why."""


class PolicyEntry(NamedTuple):
    """Addresses that are ``text``, then anything if ``is_open``; the user's name precedes it if ``before`` is given."""

    text: str
    is_open: bool
    #: What precedes the user's name, None without that.
    before: str | None = None


def parse_entry(text: str) -> PolicyEntry:
    """Return the parts of an entry; EntryError if it is empty or names the user more than once."""
    if not text:
        raise EntryError("an entry is empty")
    is_open = text.endswith(WILDCARD)
    text = text.removesuffix(WILDCARD)
    if _BRACED not in text:
        return PolicyEntry(text, is_open)
    first, *others = map(unescape, USER_TOKEN.split(text))
    if len(others) > 1:
        raise EntryError("an entry holds the user's name more than once")
    return PolicyEntry(others[0], is_open, first) if others else PolicyEntry(first, is_open)


def unescape(text: str) -> str:
    """Return `text` with `${user}` for each `$${user}`."""
    return text.replace(_ESCAPED, _LITERAL)


def plain_entries(texts: Iterable[str], *, patterns: bool = False) -> tuple[str, ...]:
    """Return the entries, followed by those for the same addresses in the spelling that the router uses."""
    texts = tuple(texts)
    if all(map(_is_plain, texts)):
        return texts
    made = (_plain_entry(text, _OPEN_IN_PATTERN if patterns else _OPEN) for text in texts)
    return tuple(dict.fromkeys((*texts, *filter(None, made))))


def _is_plain(text: str) -> bool:
    """Return whether the router uses the text as it is, as for nearly all: no location, no separator at an end."""
    return not (text.startswith("/") or text.endswith(SEPARATED) or ":/" in text)


def _plain_entry(text: str, opening: re.Pattern[str]) -> str:
    """Return an entry in the router's spelling; a location counts only in the fixed text at the entry's beginning."""
    match = opening.search(text)
    if match is None:
        return plain(text)
    rest = text[match.start() :]
    return strip_location(text[: match.start()]) + (rest[:-1] if rest[-1] in SEPARATORS else rest)
