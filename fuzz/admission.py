"""Any sequence of arrivals, logins and ends keeps the counts of open connections right and each lock for its time.

Each two bytes are an act: the first chooses it, the second its host, role and user, or the seconds that pass. The
reference counts the open connections and stores the end of each lock. The lockout keeps at most `MOST_ENTRIES` entries.

Allowed: nothing. The router refuses a connection over a limit; it raises no exception.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_network
from typing import Final

from trouter.admission.handshakes import HandshakeRules, Handshakes, Newcomer
from trouter.admission.lockout import Key, Lockout, LockoutRules
from trouter.config.hosts import place_of
from trouter.core.terms import ROUTER_ROLES
from trouter.policy.compiled import ConnectionLimits
from trouter.policy.counts import VhostConnections
from trouter.policy.kinds import Reason

COVERS = ("trouter.admission.handshakes", "trouter.admission.lockout", "trouter.policy.counts")
HOSTS: Final = ("10.0.0.1", "10.0.0.2", "2001:db8::1", "2001:db8::2", "127.0.0.1", "pipe", "10.9.0.1", "10.0.0.3")
ROLES: Final = ("normal", "inter-router")
USERS: Final = ("", "a", "b", "c")
EXEMPT: Final = (ip_network("10.9.0.0/16"),)
HANDSHAKES: Final = HandshakeRules(max_handshakes=6, max_by_place=3, arrivals_per_second=0, exempt=EXEMPT)
LOCKS: Final = LockoutRules(
    delay_after=3,
    delay_window_s=10.0,
    longest_delay_s=4.0,
    lock_after=4,
    lock_window_s=60.0,
    lock_s=30.0,
    exempt=EXEMPT,
)
MOST_ENTRIES: Final = 8
LIMITS: Final = ConnectionLimits(connections=8, per_user=4, per_host=3)


class Door:
    """The counters under test, the reference's open connections, and the end of each lock of a user and place."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.handshakes = Handshakes(lambda: self.now_s, HANDSHAKES)
        self.lockout = Lockout(lambda: self.now_s, LOCKS, MOST_ENTRIES)
        self.counts = VhostConnections()
        self.newcomers: list[Newcomer] = []
        self.open: dict[str, tuple[str, str]] = {}
        self.locked_s: dict[Key, float] = {}
        self.opened = 0

    def arrive(self, value: int) -> None:
        host, role = HOSTS[value & 7], ROLES[value >> 3 & 1]
        counted = [each for each in self.newcomers if each.host != HOSTS[6] and kind(each.role) == kind(role)]
        near = [each for each in counted if each.place == place_of(host)]
        full = host != HOSTS[6] and (len(counted) >= HANDSHAKES.max_handshakes or len(near) >= HANDSHAKES.max_by_place)
        refusal = self.handshakes.too_many(host, role)
        assert bool(refusal) == full, f"{len(counted)} before their open, {len(near)} near: {refusal!r}"
        if not refusal:
            self.newcomers.append(self.handshakes.begin_handshake(host, role))

    def come_to_open(self, value: int) -> None:
        if self.newcomers:
            newcomer = self.newcomers.pop(value % len(self.newcomers))
            for _ in range(1 + (value >> 7)):
                self.handshakes.end_handshake(newcomer)

    def enter(self, value: int) -> None:
        host, user = HOSTS[value & 7], USERS[value >> 3 & 3]
        of_user = [name for name, (one, _) in self.open.items() if one == user]
        of_host = [name for name, (_, one) in self.open.items() if one == host]
        full = (len(self.open), len(of_user), len(of_host))
        reasons = (Reason.MAX_CONNECTIONS, Reason.MAX_CONNECTIONS_PER_USER, Reason.MAX_CONNECTIONS_PER_HOST)
        expected = tuple(why for why, count, limit in zip(reasons, full, LIMITS, strict=True) if count >= limit)
        assert self.counts.limits_reached(LIMITS, user, host) == expected, f"{full} are open"
        if not expected:
            self.opened += 1
            self.counts.add_connection(str(self.opened), user, host)
            self.open[str(self.opened)] = user, host

    def leave(self, value: int) -> None:
        if self.open:
            name = list(self.open)[value % len(self.open)]
            self.counts.remove_connection(name)
            del self.open[name]

    def log_in(self, value: int, right: bool) -> None:
        host, user = HOSTS[value & 7], USERS[value >> 3 & 3]
        pair = Key(place_of(host), user)
        verdict = self.lockout.judge_attempt(host, user, right=right)
        is_due = self.locked_s.get(pair, 0.0) > self.now_s
        assert verdict.locked == is_due, f"{pair} is locked until {self.locked_s.get(pair)}"
        if verdict.began:
            self.locked_s[pair] = self.now_s + LOCKS.lock_s

    def forgive(self, value: int) -> None:
        keys = self.lockout.keys()
        if keys:
            key = keys[value % len(keys)]
            assert self.lockout.remove_entry(key)

    def look(self) -> None:
        kept = self.lockout.keys()
        assert len(kept) <= MOST_ENTRIES
        self.locked_s = {pair: until_s for pair, until_s in self.locked_s.items() if pair in kept}
        assert len(self.handshakes) == sum(each.host != HOSTS[6] for each in self.newcomers)
        assert len(self.counts) == len(self.open)
        assert sum(map(len, self.counts.by_user().values())) == len(self.open)
        assert sum(map(len, self.counts.by_host().values())) == len(self.open)


def kind(role: str) -> bool:
    return role in ROUTER_ROLES


ACTS: Final[tuple[Callable[[Door, int], None], ...]] = (
    Door.arrive,
    Door.come_to_open,
    Door.enter,
    Door.leave,
    lambda door, value: door.log_in(value, False),
    lambda door, value: door.log_in(value, True),
    Door.forgive,
)


def check(data: bytes) -> None:
    door = Door()
    for act, value in zip(data[::2], data[1::2], strict=False):
        if act & 7 < len(ACTS):
            ACTS[act & 7](door, value)
        else:
            door.now_s += value / 4
        door.look()
    for _ in range(len(door.newcomers)):
        door.come_to_open(0)
    for _ in range(len(door.open)):
        door.leave(0)
    door.look()
    assert not door.handshakes._counts
