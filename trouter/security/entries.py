"""One entry of `sources` or `targets`, taken apart before any user's name is known (security.md 4.7).

The user's name is put between two fixed texts and never looked into: whatever it holds, `*` and `${user}` among it, is
text (R-4.7a). `docs/policy.md` has the language.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from trouter.config.access import USER_TOKEN

WILDCARD: Final = "*"
#: How the two spellings of the user's name are written where they are meant as text.
_BRACED: Final = "{user}"
_ESCAPED: Final = "$${user}"
_LITERAL: Final = "${user}"


class EntryError(ValueError):
    """An entry that cannot be decided; the text says why."""


class Entry(NamedTuple):
    """Addresses that are `prefix`, then the user's name if `has_user`, then `suffix`, then anything if `wildcard`."""

    prefix: str
    suffix: str = ""
    has_user: bool = False
    wildcard: bool = False


def parse_entry(text: str) -> Entry:
    """The parts of an entry; EntryError if it is empty or names the user more than once."""
    if not text:
        raise EntryError("an entry is empty")
    wildcard = text.endswith(WILDCARD)
    if _BRACED not in text:
        return Entry(text[:-1] if wildcard else text, "", False, wildcard)
    prefix, *others = USER_TOKEN.split(text.removesuffix(WILDCARD))
    if len(others) > 1:
        raise EntryError("an entry holds the user's name more than once")
    suffix = others[0] if others else ""
    return Entry(unescape(prefix), unescape(suffix), bool(others), wildcard)


def unescape(text: str) -> str:
    """Text in which `$${user}` is the text `${user}`."""
    return text.replace(_ESCAPED, _LITERAL)
