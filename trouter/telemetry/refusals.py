"""The counts of connections that were refused before their open, by listener and reason. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

#: The reasons; no other label reaches /metrics.
LIMIT, MEMORY, BLOCKED, PROXY_HEADER = "limit", "memory", "blocked", "proxy-header"
TLS, SASL, NOT_AMQP, TIMEOUT, POLICY = "tls", "sasl", "not-amqp", "timeout", "policy"
REASONS: Final[Mapping[str, str]] = {
    SASL: "the login was refused, or left out where it is needed",
    TLS: "the TLS handshake failed, or the client began without TLS, or with it where there is no sslProfile",
    NOT_AMQP: "the client's bytes were not AMQP, or broke its rules",
    TIMEOUT: "the client sent no open in time, or too slowly",
    POLICY: "the policy, or a decision, refused the open",
    LIMIT: "a limit of connections, of handshakes or of connections a second was reached",
    MEMORY: "the router was short of memory",
    BLOCKED: "a decision blocks the host",
    PROXY_HEADER: "the PROXY header was missing or invalid, or the host is none of proxyProtocolHosts",
}
#: Refusals of the last one to two periods count as recent.
PERIOD_S: Final = 300.0


class Refusals:
    """The counts of one router. ``now`` returns the time in seconds from any start; listeners are configured ones."""

    def __init__(self, now: Callable[[], float]) -> None:
        #: By the name of the listener, and the reason.
        self.counts: Counter[tuple[str, str]] = Counter()
        self._now = now
        self._began_s = float("-inf")
        self._before: Counter[tuple[str, str]] = Counter()
        self._at_began: Counter[tuple[str, str]] = Counter()

    def count_refused(self, listener: str, reason: str) -> None:
        """Count a connection that was refused for one of ``REASONS``."""
        self._turn_period()
        self.counts[listener, reason] += 1

    def by_reason(self) -> dict[str, int]:
        """Return the counts of all listeners, by reason, without zeros."""
        total: Counter[str] = Counter()
        for (_, reason), count in self.counts.items():
            total[reason] += count
        return dict(total)

    def recent(self, listener: str) -> dict[str, int]:
        """Return the recent counts of a listener by reason, the largest first, without zeros."""
        self._turn_period()
        found = {reason: self.counts[listener, reason] - self._before[listener, reason] for reason in REASONS}
        return dict(sorted(((reason, count) for reason, count in found.items() if count), key=lambda each: -each[1]))

    def _turn_period(self) -> None:
        """Begin another period if the present one is over."""
        now_s = self._now()
        passed_s = now_s - self._began_s
        if passed_s < PERIOD_S:
            return
        self._before = self._at_began if passed_s < 2 * PERIOD_S else self.counts.copy()
        self._at_began = self.counts.copy()
        self._began_s = now_s
