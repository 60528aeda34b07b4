"""Counts events that a peer can repeat at will, so that they flood neither the log nor the records.

In each second the first events of a subject are written one by one; the others are written together at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

#: Subjects counted at a time; events of further ones are written at once.
MAX_SUBJECTS: Final = 10_000

#: Writes this many events at once.
Writer = Callable[[int], None]


class _Subject:
    """The events of one subject since the last round, and the writer of those held back."""

    __slots__ = ("singly", "together", "write")

    def __init__(self) -> None:
        self.singly = 0
        self.together = 0
        self.write: Writer = _nothing


def _nothing(count: int) -> None:
    """Write nothing: no event was held back."""


class Repeats:
    """The repeating events of one router."""

    def __init__(self) -> None:
        self._subjects: dict[Hashable, _Subject] = {}

    def happened(self, subject: Hashable, singly: int, write: Writer) -> None:
        """Note an event of ``subject``: write it at once if fewer than ``singly`` came since the last round, else then.

        The ``write`` of the first event held back is called for all that follow it.
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
