"""The ledger of a scenario: what became of each attempt to send a message, told by both ends."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple


class Heard(IntEnum):
    """What a sender was told of an attempt."""

    NOTHING = 0
    ACCEPTED = 1
    #: Released, modified or rejected: the sender knows that it must send the message again.
    RETURNED = 2
    #: The sender's own connection ended before the outcome came.
    CONNECTION_LOST = 3


class Recovery(NamedTuple):
    """How long after a fault the next message that was sent after it was accepted, in seconds."""

    seconds: float
    #: Of these, until what the fault had ended took connections again; 0 when no message waited for that.
    away_s: float = 0.0


@dataclass(frozen=True)
class Totals:
    """One row of the table; numbers of attempts, and seconds."""

    attempted: int
    accepted: int
    returned: int
    unknown: int
    received: int
    #: The sender was told "accepted", and the message came to no receiver.
    lost: int
    #: The sender was told "accepted", and every receiver that it came to said otherwise.
    falsely_accepted: int
    #: One attempt came to receivers twice, and no broker promises only "at least once".
    duplicated: int
    #: One attempt came twice from a broker, which may deliver again what it did not hear of.
    redelivered: int
    #: The sender's connection stood to the end, and the outcome never came.
    stuck: int
    #: The longest; None when none was awaited.
    recovery: Recovery | None

    @property
    def failures(self) -> list[str]:
        """Say what must not have happened and did; empty when the ledger is clean."""
        found = {name: getattr(self, name) for name in ("lost", "falsely_accepted", "duplicated", "stuck")}
        return [f"{name.replace('_', ' ')}: {count:,}" for name, count in found.items() if count]


@dataclass
class Ledger:
    """Attempts by number, from 0; each is one transfer of one sender."""

    heard: bytearray = field(default_factory=bytearray)
    arrived: bytearray = field(default_factory=bytearray)
    taken: bytearray = field(default_factory=bytearray)
    #: A broker is between the senders and the receivers.
    at_least_once: bool = False
    recoveries: list[Recovery] = field(default_factory=list)

    def attempt(self) -> int:
        """Enter a new attempt; return its number."""
        for column in (self.heard, self.arrived, self.taken):
            column.append(0)
        return len(self.heard) - 1

    def hear(self, number: int, outcome: Heard) -> None:
        """Enter what the sender of an attempt was told."""
        self.heard[number] = outcome

    def arrive(self, number: int, accepted: bool) -> None:
        """Enter that an attempt came to a receiver, and whether that accepts it."""
        self.arrived[number] += 1
        self.taken[number] += accepted

    def totals(self) -> Totals:
        """Add up."""
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
    """A ledger whose entries are wrong for four attempts, one for each failure, so that it cannot be clean."""

    def hear(self, number: int, outcome: Heard) -> None:
        """Enter it, but forget what the sender was told of attempt 4: it is stuck."""
        if number != 4:
            super().hear(number, outcome)

    def arrive(self, number: int, accepted: bool) -> None:
        """Enter it, but forget that 1 came (lost), have 2 refused (falsely accepted) and 3 come twice (duplicated)."""
        for _ in range({1: 0, 3: 2}.get(number, 1)):
            super().arrive(number, accepted and number != 2)
