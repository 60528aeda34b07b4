"""Merge settlements into as few disposition frames as possible (AMQP 1.0 part 2, 2.7.6).

Neighbouring delivery-ids with the same state and settled flag become one range. Any other delivery writes the range
first, so the peer gets its dispositions in their order.
"""

from __future__ import annotations

from trouter.wire.outgoing import write_disposition

_MASK32 = 0xFFFFFFFF


class Settlements:
    """The dispositions of one session in one role, gathered until ``write``."""

    __slots__ = ("_first", "_last", "_role", "_settled", "_state", "pending")

    def __init__(self, role: bool) -> None:
        self._role = role
        self._first = 0
        self._last = 0
        self._settled = False
        self._state: bytes | None = None
        self.pending = False

    def add(self, out: bytearray, channel: int, delivery_id: int, state: bytes | None, settled: bool) -> None:
        """Gather one delivery's encoded ``state``; write the range so far to ``out`` if this does not extend it."""
        if self.pending:
            if (
                delivery_id == ((self._last + 1) & _MASK32)
                and settled == self._settled
                and (state is self._state or state == self._state)
            ):
                self._last = delivery_id
                return
            self.write(out, channel)
        self._first = self._last = delivery_id
        self._settled = settled
        self._state = state
        self.pending = True

    def write(self, out: bytearray, channel: int) -> None:
        """Write the gathered disposition."""
        if self.pending:
            self.pending = False
            write_disposition(out, channel, self._role, self._first, self._last, self._settled, self._state)
            self._state = None
