"""The idle time-outs of both sides of a connection (AMQP 1.0 part 2, 2.4.5)."""

from __future__ import annotations

from typing import Final

_SHORTEST_TIMEOUT_S: Final = 0.4


class IdleTimeouts:
    """How long each side may be silent, and when the peer last was not."""

    __slots__ = ("local_timeout_s", "remote_timeout_s", "received", "_received_at_s")

    def __init__(self, local_timeout_s: float) -> None:
        #: Seconds of the peer's silence after which we close the connection; 0 for never.
        self.local_timeout_s = local_timeout_s
        #: Seconds of our silence after which the peer may close it; 0 for never, and before its open.
        self.remote_timeout_s = 0.0
        #: A frame came since the last tick.
        self.received = False
        self._received_at_s: float = -1.0

    @property
    def tick_period_s(self) -> float:
        """Seconds between ticks; 0 for never. A peer's time-out below 0.4 s counts as 0.4 s."""
        periods = [self.local_timeout_s] if self.local_timeout_s > 0 else []
        if self.remote_timeout_s > 0:
            periods.append(max(_SHORTEST_TIMEOUT_S, self.remote_timeout_s))
        return min(periods) / 4 if periods else 0.0

    def is_peer_silent(self, now_s: float) -> bool:
        """Return whether the peer was silent for too long; to be called at each tick."""
        if self.received or self._received_at_s < 0:
            self.received = False
            self._received_at_s = now_s
            return False
        return 0 < self.local_timeout_s <= now_s - self._received_at_s
