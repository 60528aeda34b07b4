"""Events that users may cause at will, such as attaches: a user's first ones are told one by one, the rest in sum.

So a user fills neither the log nor the records with what the policy allows, and a list of all events of others remains.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Final

from trouter._buckets import Bucket
from trouter.config.hosts import place_of

#: Events of a kind and a user that are told one by one: so many at once, and so many in each second.
AT_ONCE: Final = 1024
A_SECOND: Final = 16
#: Kinds and users counted at a time; events of further ones are told one by one.
MAX_STORES: Final = 10_000
#: What clients without a login are called.
_ANYBODY: Final = frozenset(("", "anonymous"))

#: Writes this many events at once.
Writer = Callable[[int], None]
#: Tells an event of a kind: calls the writer at once with 1, or within a second with the number of events.
Teller = Callable[[str, Writer], None]


def tell_all(kind: str, write: Writer) -> None:
    """Tell every event one by one, as those of routers, which carry the links of many users."""
    write(1)


class Allowances:
    """What each user of one router may still have told one by one.

    ``sum_up`` is ``Repeats.happened``, which writes the others together; ``clock`` returns seconds.
    """

    def __init__(
        self, sum_up: Callable[[Hashable, int, Writer], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._sum_up = sum_up
        self._clock = clock
        self._buckets: dict[Hashable, Bucket] = {}

    def teller(self, vhost: str, user: str, host: str) -> Teller:
        """Return what tells the events of a user of a vhost, or of those without a login on one host."""
        return _UserTeller(self, vhost, user, place_of(host) if user in _ANYBODY else "")

    def tell(self, key: tuple[str, ...], write: Writer) -> None:
        """Tell an event of a kind and a user, which are its key."""
        now_s = self._clock()
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._buckets) >= MAX_STORES:
                self._forget_quiet(now_s)
            if len(self._buckets) >= MAX_STORES:
                write(1)
                return
            bucket = self._buckets[key] = Bucket(A_SECOND, now_s, AT_ONCE)
        if bucket.take_tokens(1, now_s):
            write(1)
        else:
            self._sum_up(key, 0, write)

    def _forget_quiet(self, now_s: float) -> None:
        """Forget the users who may have as many events as new ones."""
        self._buckets = {key: each for key, each in self._buckets.items() if each.tokens(now_s) < AT_ONCE}


class _UserTeller:
    """The teller of one connection: there are many, so it is small."""

    __slots__ = ("_allowances", "_place", "_user", "_vhost")

    def __init__(self, allowances: Allowances, vhost: str, user: str, place: str) -> None:
        self._allowances = allowances
        self._vhost = vhost
        self._user = user
        self._place = place

    def __call__(self, kind: str, write: Writer) -> None:
        self._allowances.tell((kind, self._vhost, self._user, self._place), write)
