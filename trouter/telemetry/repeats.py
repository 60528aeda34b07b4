"""Counts events that a peer can repeat at will, so that they flood neither the log nor the records.

Of what comes from one subject the first few in each second are told one by one, as they come; those that follow are
told together at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

#: Subjects that are counted at a time; with more of them, everything is told by itself.
MAX_SUBJECTS: Final = 10_000

#: Writers of this many at once.
Writer = Callable[[int], None]


class _Subject:
    """What came from one since the last round, and how the rest of it is told."""

    __slots__ = ("singly", "together", "write")

    def __init__(self) -> None:
        self.singly = 0
        self.together = 0
        self.write: Writer = _nothing


def _nothing(count: int) -> None:
    """Nothing was held back."""


class Repeats:
    """Everything of one router that repeats."""

    def __init__(self) -> None:
        self._subjects: dict[Hashable, _Subject] = {}

    def happened(self, subject: Hashable, singly: int, write: Writer) -> None:
        """Note one more for ``subject``: written at once if fewer than ``singly`` came since the last round, else then.

        ``write`` of the first that is held back speaks for all that follow it.
        """
        known = self._subjects.get(subject)
        if known is None:
            if len(self._subjects) < MAX_SUBJECTS:
                known = self._subjects[subject] = _Subject()
            else:
                write(1)
                return
        if known.singly < singly:
            known.singly += 1
            write(1)
            return
        if not known.together:
            known.write = write
        known.together += 1

    def write(self) -> None:
        """Write what was held back, and begin anew; called about once a second."""
        if self._subjects:
            subjects, self._subjects = self._subjects, {}
            for each in subjects.values():
                if each.together:
                    each.write(each.together)
