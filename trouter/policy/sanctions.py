"""The decisions in force about users, hosts and tenants. Nothing here waits or does I/O.

Each target has at most one sanction; a later one replaces it. The ids of decisions carried out are stored, so that the
same decision, sent again, changes nothing; the oldest of too many ids are forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from trouter.config.hosts import place_of
from trouter.hooks import Decision

LOCK_USER: Final = "lock-user"
BLOCK_HOST: Final = "block-host"
SLOW_TENANT: Final = "slow-tenant"
#: The action that each of these undoes.
UNDOES: Final = {"unlock-user": LOCK_USER, "unblock-host": BLOCK_HOST, "restore-tenant": SLOW_TENANT}
#: The most ids that are stored.
MAX_SEEN: Final = 10_000


class SanctionTarget(NamedTuple):
    """The target of a sanction."""

    action: str
    subject: str
    vhost: str = ""


@dataclass(frozen=True, slots=True)
class Sanction:
    """A decision in force, until ``until_s`` of trio's clock; the user ``by`` sent it."""

    target: SanctionTarget
    decision: Decision
    by: str
    until_s: float
    #: It came to this worker, which records its end.
    own: bool = True


class Sanctions:
    """The sanctions of a router. ``now`` returns the time in seconds from any start."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._standing: dict[SanctionTarget, Sanction] = {}
        self._seen: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._standing)

    def __iter__(self) -> Iterator[Sanction]:
        return iter(list(self._standing.values()))

    def find_sanction(self, target: SanctionTarget) -> Sanction | None:
        """Return the sanction on ``target``; None if there is none."""
        return self._standing.get(target)

    def was_carried_out(self, decision: Decision) -> bool | None:
        """Return whether this decision was carried out before; None if its id was another decision's."""
        known = self._seen.get(decision.id)
        return False if known is None else True if known == hash(decision) else None

    def remember_decision(self, decision: Decision) -> None:
        """Store that the decision was carried out."""
        self._seen[decision.id] = hash(decision)
        if len(self._seen) > MAX_SEEN:
            self._seen.popitem(last=False)

    def add_sanction(self, sanction: Sanction) -> None:
        """Put a sanction in force."""
        self._standing[sanction.target] = sanction

    def lift_sanction(self, target: SanctionTarget) -> Sanction | None:
        """End the sanction on ``target``; return it, or None if there was none."""
        return self._standing.pop(target, None)

    def expired_sanctions(self) -> list[Sanction]:
        """Return the sanctions whose time is over."""
        now_s = self._now()
        return [sanction for sanction in self._standing.values() if sanction.until_s <= now_s]

    @property
    def next_s(self) -> float:
        """Time when the next one ends; infinity without any."""
        return min((sanction.until_s for sanction in self._standing.values()), default=float("inf"))

    # --- queries

    def blocks_user(self, user: str, *scopes: str) -> bool:
        """Return whether a user is locked: everywhere, or in one of the vhosts or tenants ``scopes``."""
        if not self._standing or not user:
            return False
        return any(SanctionTarget(LOCK_USER, user, scope) in self._standing for scope in ("", *scopes))

    def blocks_host(self, host: str) -> bool:
        """Return whether a decision blocks ``host``."""
        return bool(self._standing) and SanctionTarget(BLOCK_HOST, place_of(host)) in self._standing

    def rate_limit(self, tenant: str) -> int | None:
        """Return the limit of a tenant's or vhost's messages a second; None for no limit."""
        sanction = self._standing.get(SanctionTarget(SLOW_TENANT, tenant)) if self._standing and tenant else None
        return None if sanction is None else sanction.decision.rate


def target_of(decision: Decision) -> SanctionTarget:
    """Return the target of a decision, or of the one that it undoes; a host counts as its place, as in lockouts."""
    action = UNDOES.get(decision.action, decision.action)
    subject = place_of(decision.subject) if action == BLOCK_HOST else decision.subject
    return SanctionTarget(action, subject, decision.vhost)
