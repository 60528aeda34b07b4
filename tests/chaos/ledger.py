"""The ledger of a scenario: the outcome of each attempt to send a message, entered from both ends."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple


class Heard(IntEnum):
    """The outcome that the sender of an attempt received."""

    NOTHING = 0
    ACCEPTED = 1
    #: Released, modified or rejected: the sender must send the message again.
    RETURNED = 2
    #: The sender's own connection ended before the outcome arrived.
    CONNECTION_LOST = 3


class Recovery(NamedTuple):
    """The time from a fault until a message sent after it was accepted, in seconds."""

    seconds: float
    #: The part of it until the killed process took connections again; 0 if no message waited for that.
    away_s: float = 0.0


@dataclass(frozen=True)
class Totals:
    """One row of the table: counts of attempts, and the longest recovery."""

    attempted: int
    accepted: int
    returned: int
    unknown: int
    received: int
    #: The sender received "accepted", and no receiver got the message.
    lost: int
    #: The sender received "accepted", and each receiver that got the message refused it.
    falsely_accepted: int
    #: Receivers got one attempt twice, and no broker is involved that promises only "at least once".
    duplicated: int
    #: A broker delivered one attempt twice, as it may when it received no outcome.
    redelivered: int
    #: The sender's connection lasted to the end, and the outcome never arrived.
    stuck: int
    #: The longest recovery; None if the scenario waited for none.
    recovery: Recovery | None

    @property
    def failures(self) -> list[str]:
        """Return a text for each count that must be 0 and is not; empty for a clean ledger."""
        found = {name: getattr(self, name) for name in ("lost", "falsely_accepted", "duplicated", "stuck")}
        return [f"{name.replace('_', ' ')}: {count:,}" for name, count in found.items() if count]


@dataclass
class Ledger:
    """Attempts by number, from 0; each is one transfer of one sender."""

    heard: bytearray = field(default_factory=bytearray)
    arrived: bytearray = field(default_factory=bytearray)
    taken: bytearray = field(default_factory=bytearray)
    #: Whether a broker is between the senders and the receivers.
    at_least_once: bool = False
    recoveries: list[Recovery] = field(default_factory=list)

    def attempt(self) -> int:
        """Enter a new attempt; return its number."""
        for column in (self.heard, self.arrived, self.taken):
            column.append(0)
        return len(self.heard) - 1

    def hear(self, number: int, outcome: Heard) -> None:
        """Enter the outcome that the sender of an attempt received."""
        self.heard[number] = outcome

    def arrive(self, number: int, accepted: bool) -> None:
        """Enter that a receiver got an attempt, and whether it accepts it."""
        self.arrived[number] += 1
        self.taken[number] += accepted

    def totals(self) -> Totals:
        """Return the sums of the ledger."""
        heard = Counter(self.heard)
        twice = sum(count > 1 for count in self.arrived)
        accepted = [number for number, told in enumerate(self.heard) if told == Heard.ACCEPTED]
        return Totals(
            attempted=len(self.heard),
            accepted=len(accepted),
            returned=heard[Heard.RETURNED],
            unknown=heard[Heard.CONNECTION_LOST],
            received=sum(map(bool, self.arrived)),
            lost=sum(not self.arrived[number] for number in accepted),
            falsely_accepted=sum(bool(self.arrived[number]) and not self.taken[number] for number in accepted),
            duplicated=0 if self.at_least_once else twice,
            redelivered=twice if self.at_least_once else 0,
            stuck=heard[Heard.NOTHING],
            recovery=max(self.recoveries, default=None),
        )


class SpoiledLedger(Ledger):
    """A ledger with wrong entries for four attempts, one for each kind of failure, so that it cannot be clean."""

    def hear(self, number: int, outcome: Heard) -> None:
        """Enter the outcome, except for attempt 4, which is stuck."""
        if number != 4:
            super().hear(number, outcome)

    def arrive(self, number: int, accepted: bool) -> None:
        """Enter the arrival; drop that of 1 (lost), refuse 2 (falsely accepted), enter 3 twice (duplicated)."""
        for _ in range({1: 0, 3: 2}.get(number, 1)):
            super().arrive(number, accepted and number != 2)
