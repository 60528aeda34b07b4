"""Events that users may cause at will, such as attaches: a user's first ones are told one by one, the rest in sum.

So a user fills neither the log nor the records with what the policy allows, and a list of all events of others remains.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Final

from trouter._buckets import Bucket

from .user_keys import UserKey

#: Events of a kind and a user that are told one by one: so many at once, and so many in each second.
AT_ONCE: Final = 1024
A_SECOND: Final = 16
#: Kinds and users counted at a time; events of further ones are told one by one.
MAX_STORES: Final = 10_000
#: Writes this many events at once.
Writer = Callable[[int], None]


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

    def tell(self, kind: str, who: UserKey | None, write: Writer) -> None:
        """Tell an event: call ``write`` at once with 1, or within a second with the number of such events.

        ``who`` has caused it; None for a router, which carries the links of many users: each of its events is told.
        """
        if who is None:
            write(1)
            return
        key, now_s = (kind, *who), self._clock()
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
