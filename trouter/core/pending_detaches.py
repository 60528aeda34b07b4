"""Detaches of routed links that wait for the other end's answer, for a limited time.

A routed link is one link to its two ends, so the answer to a peer's detach is that of the other peer. The wait for it
ends after ``PATIENCE_S``.
"""

from __future__ import annotations

from typing import Final, Protocol

#: Seconds that the other end may leave a detach unanswered.
PATIENCE_S: Final = 10.0
#: Overdue detaches that one scan answers.
_AT_ONCE: Final = 500


class PendingDetach(Protocol):
    """A routed link with one end detached."""

    def wait_no_longer(self) -> None:
        """Answer the detach without the other end's answer."""


class PendingDetaches:
    """The unanswered detaches, the longest waiting first."""

    def __init__(self) -> None:
        self._due_s: dict[PendingDetach, float] = {}

    def add(self, pending: PendingDetach, now_s: float) -> None:
        """Wait for the answer to a detach that came at ``now_s``."""
        self._due_s[pending] = now_s + PATIENCE_S

    def discard(self, pending: PendingDetach) -> None:
        """Forget a link whose other end has answered or is gone."""
        self._due_s.pop(pending, None)

    def scan(self, now_s: float) -> None:
        """Answer the detaches that have waited long enough; to be called about once a second."""
        for pending in self._overdue(now_s):
            del self._due_s[pending]
            pending.wait_no_longer()

    def _overdue(self, now_s: float) -> list[PendingDetach]:
        overdue: list[PendingDetach] = []
        for pending, due_s in self._due_s.items():
            if due_s > now_s or len(overdue) == _AT_ONCE:
                break
            overdue.append(pending)
        return overdue
