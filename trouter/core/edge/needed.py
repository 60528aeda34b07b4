"""The links without which an uplink is of little use, and the interior router's answer to each."""

from __future__ import annotations

from typing import Final

from trouter.engine.link_base import Link

#: Beats until a refused link is attached again: at first, and at most; the time doubles with each refusal.
FIRST_WAIT_BEATS: Final = 5
LONGEST_WAIT_BEATS: Final = 60


class NeededLinks:
    """The needed links of one uplink, by name."""

    def __init__(self) -> None:
        self._attached: dict[Link, str] = {}
        #: The names of links that the interior router has not taken.
        self._missing: set[str] = set()
        #: The reason of each refusal, by the link's name.
        self._refused: dict[str, str] = {}
        #: For each refused link that is to be attached again, the beats until then.
        self._left: dict[str, int] = {}
        #: The wait of each link after its next refusal, in beats.
        self._next_waits: dict[str, int] = {}

    @property
    def complete(self) -> bool:
        """True while the interior router has taken all of them."""
        return not self._missing

    @property
    def refusal(self) -> str:
        """The reasons of those that it refused, empty if it refused none."""
        return "; ".join(self._refused.values())

    def add_link(self, name: str, link: Link) -> None:
        """Add a link that is being attached under this name, for the first time or again."""
        self._attached[link] = name
        self._missing.add(name)

    def note_answer(self, link: Link) -> bool:
        """Note the answer to a link; return whether all needed links are attached now and were not before."""
        name = self._attached.get(link)
        answer = link.remote_attach
        if name not in self._missing or answer is None or (answer.source if link.incoming else answer.target) is None:
            return False
        self._missing.discard(name)
        self._refused.pop(name, None)
        self._next_waits.pop(name, None)
        return not self._missing

    def note_end(self, link: Link, why: str, *, again: bool) -> bool:
        """Note the end of a needed link, to be attached ``again``; return whether the reason is a new one."""
        name = self._attached.pop(link)
        known = self._refused.get(name)
        self._missing.add(name)
        self._refused[name] = why
        if again:
            wait = self._next_waits.get(name, FIRST_WAIT_BEATS)
            self._left[name] = wait
            self._next_waits[name] = min(2 * wait, LONGEST_WAIT_BEATS)
        return known != why

    def due_links(self) -> list[str]:
        """Count a beat; return the names of the links that are to be attached again now."""
        self._left = {name: left - 1 for name, left in self._left.items()}
        due = [name for name, left in self._left.items() if left <= 0]
        for name in due:
            del self._left[name]
        return due
