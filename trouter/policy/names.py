"""Entries of whole addresses or prefixes (`sources`, `targets`), as hash tables and sorted prefixes.

A decision costs a few look-ups however many entries there are. Nothing is compiled per user: the user's name is
compared with the address at the positions where some entry has it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from trouter.policy.entries import parse_entry

#: Stands for no entry; entries count from 1.
NO_ENTRY: Final = 0


class Texts:
    """Whole texts, and beginnings of texts, each with a number."""

    __slots__ = ("_beginnings", "_sorted", "_whole")

    def __init__(self, texts: Iterable[tuple[str, int, bool]]) -> None:
        """``texts``: each with its number, and whether it is a beginning; the first of equal ones counts."""
        self._whole: dict[str, int] = {}
        self._beginnings: dict[str, int] = {}
        for text, number, is_open in texts:
            (self._beginnings if is_open else self._whole).setdefault(text, number)
        #: Beginnings without those that begin with another one.
        self._sorted: list[str] = []
        for text in sorted(self._beginnings):
            if not (self._sorted and text.startswith(self._sorted[-1])):
                self._sorted.append(text)

    def find_entry(self, text: str) -> int:
        """Return the number of `text`, or of a beginning of it, else NO_ENTRY.

        A text that sorts between a beginning and `text` begins with that, too, and was left out: so the nearest
        beginning below `text` is the only candidate.
        """
        if number := self._whole.get(text, NO_ENTRY):
            return number
        at = bisect_right(self._sorted, text)
        if at and text.startswith(self._sorted[at - 1]):
            return self._beginnings[self._sorted[at - 1]]
        return NO_ENTRY


class NameRules:
    """The entries of one `sources` or `targets`; EntryError if one is invalid."""

    __slots__ = ("_after_user", "_plain", "_starts")

    def __init__(self, entries: Iterable[str]) -> None:
        found: dict[str | None, list[tuple[str, int, bool]]] = {}
        for number, text in enumerate(entries, 1):
            entry = parse_entry(text)
            found.setdefault(entry.before, []).append((entry.text, number, entry.is_open))
        self._plain = Texts(found.pop(None, ()))
        #: By the text before the user's name, those after it.
        self._after_user = {before: Texts(texts) for before, texts in found.items() if before is not None}
        #: The positions of the user's name in entries, ascending.
        self._starts = tuple(sorted(set(map(len, self._after_user))))

    def find_entry(self, address: str, user: str) -> int:
        """Return the number of an entry that covers `address`, else NO_ENTRY; an empty `user` is in no entry."""
        if not address:
            return NO_ENTRY
        number = self._plain.find_entry(address)
        for start in self._starts if user and not number else ():
            if address.startswith(user, start) and (texts := self._after_user.get(address[:start])):
                number = texts.find_entry(address[start + len(user) :])
                if number:
                    break
        return number
