"""The guard of new connections: it refuses hosts that connect too often, send too slowly or guess passwords."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from urllib.parse import quote

import trio

from trouter._seldom import SeldomLine
from trouter.columns.security import LockoutFacts
from trouter.config.entities import RouterEntity
from trouter.core.terms import ROUTER_ROLES
from trouter.net.tallies import Tallies
from trouter.policy.sanctions import Sanctions
from trouter.records.text import clean
from trouter.telemetry.refusals import Refusals

from .handshakes import HandshakeRules, Handshakes
from .lockout import Key, Lockout, LockoutRules
from .memory import MemoryWatch
from .turns import Turns

log = logging.getLogger("trouter.SERVER")


class Guard:
    """The limits for unauthenticated peers that all listeners of a router share."""

    def __init__(
        self,
        memory: MemoryWatch,
        now: Callable[[], float] = trio.current_time,
        sanctions: Sanctions | None = None,
        tallies: Tallies | None = None,
        notify: Callable[[Mapping[str, object]], None] | None = None,
    ) -> None:
        """``tallies``: the counts of all workers; None for a router of one process. ``notify``: see ``Lockout``."""
        self.memory = memory
        self.tallies = tallies
        #: The decisions about users and hosts.
        self.sanctions = Sanctions(now) if sanctions is None else sanctions
        self.lockout = Lockout(now, blocks=self.sanctions.blocks_user, notify=notify)
        self.handshakes = Handshakes(now, tallies=tallies)
        self.turns = Turns()
        #: Connections refused by ``refuses_connection``.
        self.turned_away = 0
        #: All refusals before an open, by listener and reason.
        self.refusals = Refusals(now)
        self._line = SeldomLine(log, now)

    def configure(self, router: RouterEntity) -> None:
        """Apply the limits of the router entity from now on; counts are kept."""
        self.lockout.rules = lockout_rules(router)
        self.handshakes.rules = handshake_rules(router)
        self.memory.set_limit(router.max_memory_bytes)

    def blocking_reason(self, host: str, role: str) -> str:
        """Return why a host is blocked, empty if it is not; routers never are, or a decision could split a network."""
        return "a decision blocks the host" if role not in ROUTER_ROLES and self.sanctions.blocks_host(host) else ""

    def refuses_connection(self, host: str, port: int, why: str) -> bool:
        """Return whether there is a reason ``why`` to refuse the connection, and log it."""
        if not why:
            return False
        self.turned_away += 1
        self._line.write("connection from %s:%s refused: %s", host, port, why)
        return True


class Lockouts:
    """The entities of management's type authLockout: one for each user at a place, and for each place."""

    def __init__(self, lockout: Lockout) -> None:
        self._lockout = lockout

    def list_keys(self) -> list[Key]:
        """Return the keys of the users and places whose failures are stored."""
        return self._lockout.keys()

    def find_facts(self, key: Key) -> LockoutFacts | None:
        """Return the failed logins of one; None if it is forgotten."""
        state = self._lockout.state_of(key)
        return None if state is None else LockoutFacts(key.place, None if key.user is None else clean(key.user), *state)

    def identity_of(self, key: Key) -> str:
        """Return the identity of an entity, with the user's name quoted so that it is unique."""
        return f"authLockout/{key.place}" + ("" if key.user is None else f":{quote(key.user, safe='')}")

    def lift_holdup(self, key: Key) -> bool:
        """Forget it, with its delay and lock; return whether it existed."""
        forgiven = self._lockout.remove_entry(key)
        if forgiven:
            log.info("an operator cleared the failed logins of %s", self.identity_of(key))
        return forgiven


def lockout_rules(router: RouterEntity) -> LockoutRules:
    """Return the configured rules against guessing of passwords."""
    return LockoutRules(
        mode=router.auth_lockout,
        delay_after=router.auth_delay_after,
        delay_window_s=float(router.auth_delay_window_seconds),
        longest_delay_s=float(router.auth_longest_delay_seconds),
        lock_after=router.auth_lockout_after,
        lock_window_s=float(router.auth_lockout_window_seconds),
        lock_s=float(router.auth_lockout_seconds),
        exempt=router.auth_lockout_exempt,
        shared=router.handshake_exempt,
    )


def handshake_rules(router: RouterEntity) -> HandshakeRules:
    """Return the configured rules for connections before their open."""
    return HandshakeRules(
        max_handshakes=router.max_handshakes,
        max_by_place=router.max_handshakes_per_host,
        least_rate=router.min_handshake_rate,
        arrivals_per_second=router.accept_rate_per_host,
        arrivals_at_once=router.accept_burst_per_host,
        exempt=router.handshake_exempt,
    )
