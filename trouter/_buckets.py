"""Rates: a bucket of tokens that refills steadily. The caller passes the time, in seconds on a clock of its own."""

from __future__ import annotations


class Bucket:
    """A bucket of ``burst`` tokens, full at first, that gains ``rate`` tokens per second; ``burst`` defaults to one
    second's tokens.
    """

    __slots__ = ("_at_s", "_burst", "_rate", "_tokens")

    def __init__(self, rate: int, now_s: float, burst: int | None = None) -> None:
        self._rate = rate
        self._burst = float(rate if burst is None else burst)
        self._tokens = self._burst
        self._at_s = now_s

    @property
    def rate(self) -> int:
        return self._rate

    def set_rate(self, rate: int, now_s: float, burst: int | None = None) -> None:
        """Use another rate, and the burst that belongs to it, from now on."""
        size = float(rate if burst is None else burst)
        if rate != self._rate or size != self._burst:
            self._refill(now_s)
            self._rate, self._burst, self._tokens = rate, size, min(self._tokens, size)

    def tokens(self, now_s: float) -> float:
        """Return the tokens that are there now; a negative number is a debt."""
        self._refill(now_s)
        return self._tokens

    def wait_s(self, now_s: float) -> float:
        """Return the seconds until the bucket has a token; 0.0 if it has one."""
        return max(0.0, (1 - self.tokens(now_s)) / self._rate)

    def take_tokens(self, count: int, now_s: float) -> int:
        """Take up to ``count`` whole tokens; return how many were taken."""
        self._refill(now_s)
        taken = max(0, min(count, int(self._tokens)))
        self._tokens -= taken
        return taken

    def return_tokens(self, count: int) -> None:
        """Return ``count`` unused tokens to the bucket."""
        self._tokens = min(self._tokens + count, self._burst)

    def owe_tokens(self, count: float, now_s: float) -> None:
        """Take ``count`` tokens; those that are missing become a debt."""
        self._refill(now_s, count)

    def cancel_debt(self) -> None:
        """Cancel a debt."""
        self._tokens = max(self._tokens, 0.0)

    def give_up(self) -> None:
        """Do nothing: nobody else knows of this bucket."""

    def is_full(self, now_s: float) -> bool:
        """Return whether the bucket is full."""
        return self.tokens(now_s) >= self._burst

    def _refill(self, now_s: float, used: float = 0) -> None:
        """Add the tokens of the time since the last call and subtract ``used``, before the excess is cut off."""
        if now_s > self._at_s:
            self._tokens += (now_s - self._at_s) * self._rate
            self._at_s = now_s
        self._tokens = min(self._tokens - used, self._burst)
