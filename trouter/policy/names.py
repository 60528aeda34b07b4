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


class Prefixes:
    """Prefixes, each with a number. If a prefix begins with another one, only the shorter is kept."""

    __slots__ = ("_numbers", "_texts")

    def __init__(self, numbers: dict[str, int]) -> None:
        self._texts: list[str] = []
        for text in sorted(numbers):
            if not (self._texts and text.startswith(self._texts[-1])):
                self._texts.append(text)
        self._numbers = numbers

    def find_entry(self, text: str) -> int:
        """Return the number of the prefix that `text` begins with, else NO_ENTRY.

        A text that sorts between a prefix and `text` begins with that prefix too, and was left out: so the nearest
        prefix below `text` is the only candidate.
        """
        at = bisect_right(self._texts, text)
        if at and text.startswith(self._texts[at - 1]):
            return self._numbers[self._texts[at - 1]]
        return NO_ENTRY


NO_PREFIXES: Final = Prefixes({})


class NameRules:
    """The entries of one `sources` or `targets`; EntryError if one is invalid."""

    __slots__ = ("_exact", "_prefixes", "_starts", "_user_exact", "_user_prefixes")

    def __init__(self, entries: Iterable[str]) -> None:
        self._exact: dict[str, int] = {}
        prefixes: dict[str, int] = {}
        self._user_exact: dict[str, dict[str, int]] = {}
        user_prefixes: dict[str, dict[str, int]] = {}
        for number, text in enumerate(entries, 1):
            entry = parse_entry(text)
            if entry.has_user:
                table = (user_prefixes if entry.wildcard else self._user_exact).setdefault(entry.prefix, {})
                table.setdefault(entry.suffix, number)
            else:
                (prefixes if entry.wildcard else self._exact).setdefault(entry.prefix, number)
        self._prefixes = Prefixes(prefixes) if prefixes else NO_PREFIXES
        self._user_prefixes = {prefix: Prefixes(suffixes) for prefix, suffixes in user_prefixes.items()}
        #: The positions of the user's name in entries, ascending.
        self._starts = tuple(sorted(set(map(len, (*self._user_exact, *user_prefixes)))))

    def find_entry(self, address: str, user: str) -> int:
        """Return the number of an entry that covers `address`, else NO_ENTRY; an empty `user` is in no entry."""
        if not address:
            return NO_ENTRY
        number = self._exact.get(address, NO_ENTRY) or self._prefixes.find_entry(address)
        if number or not user:
            return number
        for start in self._starts:
            if start > len(address):
                break
            if address.startswith(user, start) and (number := self._find_after(address, start, start + len(user))):
                return number
        return NO_ENTRY

    def _find_after(self, address: str, start: int, end: int) -> int:
        """Return the number of an entry with the user's name from `start` to `end`, else NO_ENTRY."""
        prefix, rest = address[:start], address[end:]
        if (suffixes := self._user_exact.get(prefix)) and rest in suffixes:
            return suffixes[rest]
        prefixes = self._user_prefixes.get(prefix)
        return NO_ENTRY if prefixes is None else prefixes.find_entry(rest)
