"""Rates: a bucket holds the tokens of one second and refills steadily. The caller passes the time."""

from __future__ import annotations


class Bucket:
    """A bucket of ``rate`` tokens, full at first, that gains ``rate`` tokens per second. Times are in seconds."""

    __slots__ = ("_at_s", "_rate", "_tokens")

    def __init__(self, rate: int, now_s: float) -> None:
        self._rate = rate
        self._tokens = float(rate)
        self._at_s = now_s

    @property
    def rate(self) -> int:
        return self._rate

    def become(self, rate: int, now_s: float) -> None:
        """Use another rate, in tokens per second, from now on."""
        if rate != self._rate:
            self._refill(now_s)
            self._rate, self._tokens = rate, min(self._tokens, float(rate))

    def tokens(self, now_s: float) -> float:
        """Return the tokens that are there now; a negative number is a debt."""
        self._refill(now_s)
        return self._tokens

    def take(self, count: int, now_s: float) -> int:
        """Take up to ``count`` whole tokens; return how many were taken."""
        self._refill(now_s)
        taken = max(0, min(count, int(self._tokens)))
        self._tokens -= taken
        return taken

    def give_back(self, count: int) -> None:
        """Return ``count`` unused tokens to the bucket."""
        self._tokens = min(self._tokens + count, float(self._rate))

    def owe(self, count: int, now_s: float) -> None:
        """Take ``count`` tokens; those that are missing become a debt."""
        self._refill(now_s, count)

    def forgive(self) -> None:
        """Cancel a debt."""
        self._tokens = max(self._tokens, 0.0)

    def is_full(self, now_s: float) -> bool:
        """Return whether the bucket is full."""
        return self.tokens(now_s) >= self._rate

    def _refill(self, now_s: float, used: int = 0) -> None:
        """Add the tokens of the time since the last call and subtract ``used``, before the excess is cut off."""
        if now_s > self._at_s:
            self._tokens += (now_s - self._at_s) * self._rate
            self._at_s = now_s
        self._tokens = min(self._tokens - used, float(self._rate))
