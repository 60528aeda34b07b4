"""Delays and locks out clients that guess passwords (security.md 8.1). No clock, no I/O.

Failures are counted by place, an IPv4 address or an IPv6 network of 64 bits (one subscriber), and by pair, a user and a
place. After a few failures further attempts are judged one after another, with growing delays. After many in a short
time the pair is locked: even the right password is refused. Right passwords wait as long as wrong ones, and unknown
users are counted like others, so neither delay nor lock reveals anything. A success clears the pair and not the place.
When the table is full, the entry untouched for longest is dropped, so a client that tries many users' names cannot make
the router forget its own place for long.

A pair's user is the name that was tried, in one spelling for all that a service may take for the same user. Attempts
that name no user are a pair of their own where their place is not counted: they are delayed, and no user is.

That takes a place for one peer, and many may share it. In the mode "delay" the places are not counted, no pair is
locked, and right passwords do not wait; only the answers to a pair's wrong ones come later and later.
"""

from __future__ import annotations

import ipaddress
import stringprep
import unicodedata
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from trouter.config.hosts import peer_address, place_of

#: The first delay; each further failure doubles it, up to the longest.
FIRST_WAIT_S: Final = 1.0
MAX_ENTRIES: Final = 100_000
#: Characters of a user's name that count; no user whom the router admits has more bytes.
MAX_USER: Final = 255

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
#: This machine: a proxy on it may forward any client.
LOOPBACK: Final[tuple[Network, ...]] = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1"))


@dataclass(frozen=True, slots=True)
class LockoutRules:
    """The limits; times in seconds."""

    #: "enforce", "delay" (only the answers to wrong passwords of a pair), "alarm" (count and report, delay no login)
    #: or "off".
    mode: str = "enforce"
    #: Failures within the window after which the next login must wait, and the longest wait.
    delay_after: int = 5
    delay_window_s: float = 60.0
    longest_delay_s: float = 30.0
    #: Failures within the window after which the pair is locked, and for how long.
    lock_after: int = 20
    lock_window_s: float = 600.0
    lock_s: float = 900.0
    #: Networks whose failures are not counted, and those counted only by pair.
    exempt: tuple[Network, ...] = ()
    shared: tuple[Network, ...] = LOOPBACK


class Key(NamedTuple):
    """The key of an entry: a place, or a user at a place; "" is the user of attempts that named none."""

    place: str
    user: str | None = None


def pair_of(host: str, user: str) -> Key:
    """Return the key of a user at the place of ``host``."""
    return Key(place_of(host), folded(user))


def folded(user: str) -> str:
    """Return one spelling for all that a service may take for this user, of at most ``MAX_USER`` characters.

    Cyrus SASL strips blanks, directories ignore case, and SASLprep drops soft hyphens and unites forms of a character:
    a client may not get more guesses by the spelling.
    """
    user = user[:MAX_USER]
    if not user.isascii():
        seen = "".join(each for each in user if not stringprep.in_table_b1(each))
        user = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold())
    return user.strip().casefold()[:MAX_USER]


class AttemptResult(NamedTuple):
    """The consequence of an attempt that a plugin has judged."""

    #: Even the right password is refused.
    locked: bool = False
    #: Seconds until the peer gets the outcome; None if too many wait already: it may come back later.
    wait_s: float | None = 0.0
    #: This attempt began the lock.
    began: bool = False


class _Entry:
    __slots__ = ("level", "locked_until_s", "times", "total", "turn_s")

    def __init__(self) -> None:
        #: The times of the last failures, as many as the rules need.
        self.times = array("d")
        self.total = 0
        #: One more than the number of times that the delay was doubled; 0 for no delay.
        self.level = 0
        #: When the last allowed attempt is judged.
        self.turn_s = 0.0
        self.locked_until_s = 0.0

    def failed_within(self, count: int, window_s: float, now_s: float) -> bool:
        """Return whether the last ``count`` failures are no older than ``window_s``."""
        return len(self.times) >= count and self.times[-count] > now_s - window_s


class Lockout:
    """The stored failures. ``now`` returns the time in seconds from any start."""

    def __init__(
        self,
        now: Callable[[], float],
        rules: LockoutRules | None = None,
        max_entries: int = MAX_ENTRIES,
        blocks: Callable[[str], bool] | None = None,
        notify: Callable[[Mapping[str, object]], None] | None = None,
    ) -> None:
        """``blocks`` returns whether a user is blocked whatever was counted; without it no user is.

        ``notify`` notifies the other workers, if there are any, of failures and successes; they ``receive_news``.
        """
        self._notify = notify
        self.rules = rules or LockoutRules()
        self._blocks = blocks
        self._now = now
        self._max_entries = max_entries
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def busy_place(self, host: str) -> str:
        """Return the place whose attempts must wait for one another; empty if those from ``host`` need not."""
        key = self._place_key(host)
        return "" if key is None or self.rules.mode != "enforce" else key.place

    def wait_s(self, host: str) -> float | None:
        """Take the turn of the next attempt from ``host``; return the seconds until then, None if too many wait."""
        key = self._place_key(host)
        wait_s = 0.0 if key is None else self._turn_s(key)
        return 0.0 if self.rules.mode != "enforce" else wait_s

    def judge_attempt(
        self, host: str, user: str, *, right: bool, tried: str = "", waited_s: float = 0.0
    ) -> AttemptResult:
        """Return the verdict on an attempt from ``host`` whose password a plugin found ``right`` or not; count a
        failure.

        ``user`` is the name that the plugin gives, ``tried`` the one in the peer's messages; both are empty if it named
        none. ``waited_s`` is the seconds for which the peer was made to wait before.
        """
        rules, blocked = self.rules, self._blocks is not None and self._blocks(user)
        if rules.mode == "off" or within(rules.exempt, host):
            return AttemptResult(blocked)
        enforced = rules.mode == "enforce"
        pair = self._pair_key(host, user or tried)
        pairs = {pair, pair_of(host, tried)} if right and tried else {pair}
        locked = blocked or (enforced and any(map(self._is_locked, pairs)))
        if rules.mode == "delay":
            wait_s: float | None = 0.0 if right else self._delay_s(pair)
        else:
            waits = [self._turn_s(each, waited_s) for each in pairs]
            wait_s = None if None in waits else max(filter(None, waits), default=0.0)
        if wait_s is None and enforced:
            return AttemptResult(locked, None)
        began = False
        if right and not locked:
            if pair is not None:
                self.remove_entry(pair)  # not that of another name that was tried: its user has proven nothing
        else:
            began = self._count_failure(host, pair)
            if self._notify is not None:
                self._notify({"failed": host, "user": "" if pair is None else pair.user})
        if rules.mode == "alarm":
            wait_s = 0.0
        return AttemptResult(locked, wait_s, began)

    def remove_entry(self, key: Key) -> bool:
        """Remove an entry; return whether there was one."""
        found = self._entries.pop(key, None) is not None
        if found and self._notify is not None:
            self._notify({"cleared": key.place, "user": key.user})
        return found

    def receive_news(self, news: Mapping[str, object]) -> None:
        """Count a login that failed at another worker, or forget an entry that was removed there."""
        user = news.get("user")
        if "failed" in news:
            host = str(news["failed"])
            self._count_failure(host, self._pair_key(host, str(user or "")))
        elif "cleared" in news:
            self._entries.pop(Key(str(news["cleared"]), None if user is None else str(user)), None)

    def keys(self) -> list[Key]:
        """Return the keys of all entries, the one touched last at the end."""
        return list(self._entries)

    def state_of(self, key: Key) -> tuple[int, float, float] | None:
        """Return the count of failures, the next delay, the rest of the lock, both in seconds; None for no entry."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        now_s = self._now()
        waits = entry.level and not self._is_forgiven(entry)
        locked_s = 0.0 if self.rules.mode == "delay" else max(0.0, entry.locked_until_s - now_s)
        return entry.total, self._pause_s(entry) if waits else 0.0, locked_s

    def count_locked(self) -> int:
        """Return the number of users whose logins from a host are locked now."""
        now_s = self._now()
        return sum(entry.locked_until_s > now_s for entry in self._entries.values() if self.rules.mode != "delay")

    def _count_failure(self, host: str, pair: Key | None) -> bool:
        """Count a failure; return whether it begins a lock of the pair."""
        place = self._place_key(host)
        if pair is not None and pair in self._entries:  # a new entry of the place must not replace it
            self._entries.move_to_end(pair)
        if place is not None:
            self._count_for(place)
        if pair is None:
            return False
        entry, now_s, rules = self._count_for(pair), self._now(), self.rules
        if (
            not pair.user
            or entry.locked_until_s > now_s
            or not entry.failed_within(rules.lock_after, rules.lock_window_s, now_s)
        ):
            return False
        entry.locked_until_s = now_s + rules.lock_s
        return True

    def _count_for(self, key: Key) -> _Entry:
        entry, now_s, rules = self._entries.get(key), self._now(), self.rules
        if entry is None:
            entry = self._entries[key] = _Entry()
            if len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)
        self._entries.move_to_end(key)
        if entry.level and self._is_forgiven(entry):
            entry.level = 0
        entry.times.append(now_s)
        del entry.times[: -max(rules.lock_after, rules.delay_after)]
        entry.total += 1
        if entry.level or entry.failed_within(rules.delay_after, rules.delay_window_s, now_s):
            entry.level += 1
        return entry

    def _turn_s(self, key: Key | None, waited_s: float = 0.0) -> float | None:
        """Take the turn of the next attempt; return the seconds until then, None if too many wait already."""
        entry = None if key is None else self._entries.get(key)
        if entry is None or not entry.level:
            return 0.0
        now_s = self._now()
        if self._is_forgiven(entry):
            entry.level = 0
            return 0.0
        turn_s = max(now_s, max(now_s - waited_s, entry.turn_s) + self._pause_s(entry))
        if turn_s - now_s > self.rules.longest_delay_s:
            return None
        entry.turn_s = turn_s
        return turn_s - now_s

    def _delay_s(self, pair: Key | None) -> float:
        """Return the seconds by which the answer to a wrong password is late; further attempts do not wait for it."""
        entry = None if pair is None else self._entries.get(pair)
        waits = entry is not None and entry.level and not self._is_forgiven(entry)
        return self._pause_s(entry) if entry is not None and waits else 0.0

    def _is_forgiven(self, entry: _Entry) -> bool:
        """Return whether the last failure is so long ago that nothing is delayed; right passwords do not count."""
        rules = self.rules
        return self._now() - entry.times[-1] > max(rules.delay_window_s, rules.longest_delay_s)

    def _pause_s(self, entry: _Entry) -> float:
        longest_s: float = min(FIRST_WAIT_S * 2.0 ** min(entry.level - 1, 30), self.rules.longest_delay_s)
        return longest_s

    def _is_locked(self, pair: Key | None) -> bool:
        entry = None if pair is None else self._entries.get(pair)
        return entry is not None and entry.locked_until_s > self._now()

    def _pair_key(self, host: str, user: str) -> Key | None:
        """Return the key of a user at a place; None for no user where the place is counted."""
        return pair_of(host, user) if user or self._place_key(host) is None else None

    def _place_key(self, host: str) -> Key | None:
        """Return the key that failures from ``host`` are counted for; None if they are not counted."""
        rules = self.rules
        return (
            None
            if rules.mode == "delay" or within(rules.exempt, host) or within(rules.shared, host)
            else Key(place_of(host))
        )


def within(networks: Iterable[Network], host: str) -> bool:
    """Return whether ``host`` is an address in one of the networks."""
    address = peer_address(host)
    return address is not None and any(address in network for network in networks)
