"""Slows down clients that guess passwords, and locks them out for a while (security.md 8.1). No clock, no I/O.

Failures are counted twice: by place, which is an IPv4 address or an IPv6 network of 64 bits, as one subscriber has, and
by pair, which is a user and a place. After a few failures the next attempts are judged one after another, each later
than the one before; after many in a short time the pair is locked: no password is right any more. Right ones wait as
wrong ones do, and names that no user has are counted like others, so that neither wait nor lock tells anything. A
success forgives the pair and not the place. A client that tries many other users' names cannot make the router forget
the client's own place for long: what was touched least lately goes first.
"""

from __future__ import annotations

import ipaddress
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

#: The first wait; each further failure doubles it, up to the longest.
FIRST_WAIT_S: Final = 1.0
MAX_ENTRIES: Final = 100_000
#: Hosts whose text is parsed once and remembered: a flood comes from few of them.
MAX_READ: Final = 4096

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
#: This machine: what seems to come from it may be any client, sent on by a proxy.
LOOPBACK: Final[tuple[Network, ...]] = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1"))


@dataclass(frozen=True, slots=True)
class LockoutRules:
    """The numbers, times in seconds."""

    #: "enforce", "alarm" (count and report, delay no login) or "off".
    mode: str = "enforce"
    #: After so many failures within so long a time the next login has to wait, so long at most.
    delay_after: int = 5
    delay_window_s: float = 60.0
    longest_delay_s: float = 30.0
    #: So many failures within so long a time, and the pair is locked, for so long.
    lock_after: int = 20
    lock_window_s: float = 600.0
    lock_s: float = 900.0
    #: From here nothing is counted; from there only by pair.
    exempt: tuple[Network, ...] = ()
    shared: tuple[Network, ...] = LOOPBACK


class Key(NamedTuple):
    """Whose failures an entry counts: of a place, or of a user from there."""

    place: str
    user: str | None = None


class Verdict(NamedTuple):
    """What comes of an attempt that a plugin has judged."""

    #: Whether the right password is not to be believed.
    locked: bool = False
    #: How long the peer has to wait for the outcome; None when too many wait before it: it may come back later.
    wait_s: float | None = 0.0
    #: The lock has begun just now.
    began: bool = False


class _Entry:
    __slots__ = ("level", "locked_until_s", "times", "total", "turn_s")

    def __init__(self) -> None:
        #: When the last failures were, as many as the rules ask for.
        self.times = array("d")
        self.total = 0
        #: How often the wait was doubled, and one; 0 for no wait.
        self.level = 0
        #: When the last attempt that was let through is judged.
        self.turn_s = 0.0
        self.locked_until_s = 0.0

    def within(self, count: int, window_s: float, now_s: float) -> bool:
        """Return whether the last ``count`` failures are no older than ``window_s``."""
        return len(self.times) >= count and self.times[-count] > now_s - window_s


class Lockout:
    """Remembers failures. ``now`` tells the time in seconds, from anywhere."""

    def __init__(
        self, now: Callable[[], float], rules: LockoutRules | None = None, max_entries: int = MAX_ENTRIES
    ) -> None:
        self.rules = rules or LockoutRules()
        #: Says whether a user may not come in whatever was counted.
        self.blocks: Callable[[str], bool] = _nobody
        self._now = now
        self._max_entries = max_entries
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def busy_place(self, host: str) -> str:
        """Return where attempts from ``host`` may have to wait for one another; empty where they never do."""
        key = self._place_key(host)
        return "" if key is None or self.rules.mode != "enforce" else key.place

    def wait_s(self, host: str) -> float | None:
        """Return how long the next attempt from ``host`` has to wait, in seconds; None if too many wait already."""
        key = self._place_key(host)
        wait_s = 0.0 if key is None else self._turn_s(key)
        return 0.0 if self.rules.mode != "enforce" else wait_s

    def judge(self, host: str, user: str, *, right: bool, waited_s: float = 0.0) -> Verdict:
        """Return what comes of an attempt from ``host``, of which a plugin says whether the password is ``right``.

        ``user`` may be empty when no name was said. ``waited_s`` is how long the peer was made to wait before. A
        failure is counted here.
        """
        rules, blocked = self.rules, self.blocks(user)
        if rules.mode == "off" or within(rules.exempt, host):
            return Verdict(blocked)
        enforced = rules.mode == "enforce"
        pair = Key(place_of(host), user) if user else None
        locked = blocked or (pair is not None and enforced and self._locked(pair))
        wait_s = 0.0 if pair is None else self._turn_s(pair, waited_s)
        if wait_s is None and enforced:
            return Verdict(locked, None)
        began = False
        if right and not locked:
            if pair is not None:
                self._entries.pop(pair, None)
        else:
            began = self._failed(host, pair)
        return Verdict(locked, wait_s, began) if enforced else Verdict(blocked, began=began)

    def forgive(self, key: Key) -> bool:
        """Forget an entry; whether there was one."""
        return self._entries.pop(key, None) is not None

    def keys(self) -> list[Key]:
        """Return all entries, the one touched last at the end."""
        return list(self._entries)

    def state(self, key: Key) -> tuple[int, float, float] | None:
        """Return failures since the entry was made, the next wait, and how long the lock lasts; None for no entry."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        now_s = self._now()
        waits = entry.level and now_s - max(entry.times[-1], entry.turn_s) <= self.rules.delay_window_s
        return entry.total, self._pause_s(entry) if waits else 0.0, max(0.0, entry.locked_until_s - now_s)

    def _failed(self, host: str, pair: Key | None) -> bool:
        """Count a failure; whether the pair is locked from now on."""
        place = self._place_key(host)
        if place is not None:
            self._count(place)
        if pair is None:
            return False
        entry, now_s, rules = self._count(pair), self._now(), self.rules
        if entry.locked_until_s > now_s or not entry.within(rules.lock_after, rules.lock_window_s, now_s):
            return False
        entry.locked_until_s = now_s + rules.lock_s
        return True

    def _count(self, key: Key) -> _Entry:
        entry, now_s, rules = self._entries.get(key), self._now(), self.rules
        if entry is None:
            entry = self._entries[key] = _Entry()
            if len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)
        self._entries.move_to_end(key)
        if entry.level and now_s - max(entry.times[-1], entry.turn_s) > rules.delay_window_s:
            entry.level = 0
        entry.times.append(now_s)
        del entry.times[: -max(rules.lock_after, rules.delay_after)]
        entry.total += 1
        if entry.level or entry.within(rules.delay_after, rules.delay_window_s, now_s):
            entry.level += 1
        return entry

    def _turn_s(self, key: Key, waited_s: float = 0.0) -> float | None:
        """Take the turn of the next attempt; return the seconds until then, or None if too many wait already."""
        entry = self._entries.get(key)
        if entry is None or not entry.level:
            return 0.0
        now_s = self._now()
        if now_s - max(entry.times[-1], entry.turn_s) > self.rules.delay_window_s:
            entry.level = 0
            return 0.0
        turn_s = max(now_s, max(now_s - waited_s, entry.turn_s) + self._pause_s(entry))
        if turn_s - now_s > self.rules.longest_delay_s:
            return None
        entry.turn_s = turn_s
        return turn_s - now_s

    def _pause_s(self, entry: _Entry) -> float:
        longest_s: float = min(FIRST_WAIT_S * 2.0 ** min(entry.level - 1, 30), self.rules.longest_delay_s)
        return longest_s

    def _locked(self, pair: Key) -> bool:
        entry = self._entries.get(pair)
        return entry is not None and entry.locked_until_s > self._now()

    def _place_key(self, host: str) -> Key | None:
        """Return the key that failures from ``host`` are counted for; None if they are not counted."""
        rules = self.rules
        return None if within(rules.exempt, host) or within(rules.shared, host) else Key(place_of(host))


def _nobody(_: str) -> bool:
    """Return False: no user is blocked."""
    return False


@lru_cache(maxsize=MAX_READ)
def place_of(host: str) -> str:
    """Return the place of ``host``: an IPv4 address, an IPv6 network of 64 bits, or the text if it is no address."""
    address = _address(host)
    if address is None:
        return host
    if address.version == 4 or address.is_loopback:
        return str(address)
    return str(ipaddress.ip_network((address, 64), strict=False))


def within(networks: Iterable[Network], host: str) -> bool:
    """Return whether ``host`` is an address in one of the networks."""
    address = _address(host)
    return address is not None and any(address in network for network in networks)


@lru_cache(maxsize=MAX_READ)
def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
