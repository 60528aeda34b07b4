"""Delivery states that the router writes (AMQP 1.0 part 3, 3.4), their ranks, and the joint outcome of a multicast."""

from __future__ import annotations

from typing import Final

from trouter.wire.performatives import Error, Modified, Rejected, encode_state

RECEIVED: Final = 0x23
ACCEPTED: Final = 0x24
REJECTED: Final = 0x25
RELEASED: Final = 0x26
MODIFIED: Final = 0x27

#: The outcomes without details, encoded, by code.
BARE: Final = {code: bytes((0, 0x53, code, 0x45)) for code in (ACCEPTED, REJECTED, RELEASED, MODIFIED)}
ACCEPTED_STATE: Final = BARE[ACCEPTED]
RELEASED_STATE: Final = BARE[RELEASED]
#: The outcome of a delivery that was sent in full to a receiver that was then lost.
FAILED_STATE: Final = encode_state(Modified(delivery_failed=True))

#: The sender of a multicast gets the highest of its copies' outcomes (routing.md 2.4).
RANK: Final = {RELEASED: 1, MODIFIED: 2, ACCEPTED: 3, REJECTED: 4}


def rejected_state(condition: str, description: str) -> bytes:
    """Return an encoded rejected outcome with an error."""
    return encode_state(Rejected(Error(condition, description)))


class Fanout:
    """The copies of one multicast delivery: the numbers of those without outcome, and of those unsettled."""

    __slots__ = ("_best", "copies_open", "outcomes_open")

    def __init__(self, copies: int) -> None:
        self.outcomes_open = copies
        self.copies_open = copies
        self._best = RELEASED

    def add_outcome(self, code: int) -> None:
        """Count a copy's outcome ``code``; a code that is no outcome (part 3, 3.4) counts as rejected."""
        self.outcomes_open -= 1
        rank = RANK.get(code)
        if rank is None:
            code, rank = REJECTED, RANK[REJECTED]
        if rank > RANK[self._best]:
            self._best = code

    @property
    def code(self) -> int:
        """Code of the highest outcome so far."""
        return self._best

    @property
    def state(self) -> bytes:
        """Highest outcome so far, encoded, without details."""
        return BARE[self._best]
