"""Rates: a bucket holds what a second allows and refills steadily. The caller passes the time in."""

from __future__ import annotations


class Bucket:
    """``rate`` tokens a second, and no more than a second's worth at once; full at first. Times are in seconds."""

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
        """Return what can be taken now; a debt where it is negative."""
        self._refill(now_s)
        return self._tokens

    def take(self, count: int, now_s: float) -> int:
        """Take up to ``count`` whole tokens; how many there were."""
        self._refill(now_s)
        taken = max(0, min(count, int(self._tokens)))
        self._tokens -= taken
        return taken

    def give_back(self, count: int) -> None:
        """Give back what was taken and will not be used."""
        self._tokens = min(self._tokens + count, float(self._rate))

    def owe(self, count: int, now_s: float) -> None:
        """Take so much, whether it was there or not: what was not there is a debt."""
        self._refill(now_s, count)

    def forgive(self) -> None:
        """Forget what is owed."""
        self._tokens = max(self._tokens, 0.0)

    def is_full(self, now_s: float) -> bool:
        """Return whether the bucket is as full as at first."""
        return self.tokens(now_s) >= self._rate

    def _refill(self, now_s: float, used: int = 0) -> None:
        """What was used in the meantime is taken from what came in the meantime, before that can flow over."""
        if now_s > self._at_s:
            self._tokens += (now_s - self._at_s) * self._rate
            self._at_s = now_s
        self._tokens = min(self._tokens - used, float(self._rate))
