"""Counts the messages of a run by outcome."""

from __future__ import annotations

from collections import Counter
from typing import Final

from trouter._text import escape_controls
from trouter.client import Accepted, Modified, Outcome, Rejected, Released

#: Reasons of refusals that are counted apart; the rest are counted together.
MAX_REASONS: Final = 20
_MAX_REASON_CHARACTERS: Final = 200
GOOD: Final = frozenset({"accepted", "pre-settled"})


class Tally:
    """Counts of a run's messages by outcome; owned by the tool that moves them."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._counts: Counter[str] = Counter()

    @property
    def messages(self) -> int:
        """The number of counted messages."""
        return self._counts.total()

    @property
    def good(self) -> bool:
        """True if each message was accepted, or was settled by its sender."""
        return self._counts.keys() <= GOOD

    def add(self, kind: str, count: int = 1) -> None:
        """Count messages with this outcome in words."""
        if count > 0:
            known = kind in self._counts or len(self._counts) < MAX_REASONS
            self._counts[kind if known else "refused for other reasons"] += count

    def add_outcome(self, outcome: Outcome) -> None:
        """Count a message with the outcome that its receiver sent."""
        self.add(_in_words(outcome))

    def text(self, seconds: float) -> str:
        """Return a line such as `sent 2 messages in 1.0 s (2/s): 1 accepted, 1 released`."""
        total = self.messages
        plural = "" if total == 1 else "s"
        rate = f" in {seconds:,.1f} s ({total / seconds:,.0f}/s)" if total and seconds > 0 else ""
        counts = ", ".join(f"{count:,} {kind}" for kind, count in self._counts.most_common())
        return f"{self._verb} {total:,} message{plural}{rate}{': ' if counts else ''}{counts}"


def _in_words(outcome: Outcome) -> str:
    match outcome:
        case Accepted():
            return "accepted"
        case Released():
            return "released"
        case Rejected(error):
            parts = () if error is None else (error.condition, error.description)
            reason = escape_controls(": ".join(str(part) for part in parts if part))[:_MAX_REASON_CHARACTERS]
            return f"rejected ({reason})" if reason else "rejected"
        case Modified():
            flags = [name for name in ("delivery_failed", "undeliverable_here") if getattr(outcome, name)]
            return f"modified ({', '.join(flags).replace('_', '-')})" if flags else "modified"
        case None:
            return "settled without an outcome"
        case _:
            return "settled with an unknown outcome"
