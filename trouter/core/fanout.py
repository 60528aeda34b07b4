"""One outcome for many copies (routing.md 2.4): the outcome and settlement that a multicast's sender gets."""

from __future__ import annotations

from trouter.engine.ports import Delivery

from .outcomes import ACCEPTED, BARE, RANK, REJECTED, RELEASED
from .ports import InEndpoint

_FIRST_OUTCOME = 0x24


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


def join_copy(partner: Delivery, out: Delivery) -> None:
    """Join the copy ``out`` with its unsettled delivery ``partner``, so that each finds the other's end."""
    out.partner = partner
    if partner.copies is None:
        partner.partner = out
    else:
        partner.copies.append(out)


def notify_sender(out: Delivery, partner: Delivery, code: int, state: bytes | None, settled: bool) -> None:
    """Relay the state of the copy ``out`` to the sender of ``partner``.

    At once for a delivery with one copy; a multicast's sender gets the highest outcome when every copy has one, and the
    settlement when every copy is settled.
    """
    source: InEndpoint = partner.link.sink  # type: ignore[assignment]
    if partner.copies is None:
        if settled:
            partner.partner = None
        source.answer(partner, code, state, settled)
        return
    fanout: Fanout = partner.context
    counted = out.context is None and (settled or code >= _FIRST_OUTCOME)
    if counted:
        out.context = fanout
        fanout.add_outcome(code or ACCEPTED)
    if settled:
        fanout.copies_open -= 1
        if out in partner.copies:
            partner.copies.remove(out)
    if fanout.outcomes_open == 0 and (counted or fanout.copies_open == 0):
        source.answer(partner, fanout.code, fanout.state, fanout.copies_open == 0)
