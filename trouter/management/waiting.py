"""Requests that wait to be answered: bounded in all, and in turns, so that one requester keeps no other waiting.

The queue gives users turns, and the connections of each user; the requests of one connection stay in their order. So a
user who sends a thousand requests, over one connection or over many, delays the next user by one of them. A neighbour
router brings the requests of users whom this one does not know; there those for one reply-to count as a connection.

A user has at most half of what the others leave. Several users together could still leave too little for another one:
so the user with the most requests loses the newest of them to one who keeps fewer even then.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable
from typing import Final, Generic, NamedTuple, TypeVar

from trouter._bell import Bell

#: The most requests that wait, and their bytes.
MAX_WAITING: Final = 1000
MAX_WAITING_BYTES: Final = 16 * 1024 * 1024

T = TypeVar("T")


class Requester(NamedTuple):
    """Who has sent a request, and over which connection, or through which neighbour for which reply-to."""

    user: Hashable
    connection: Hashable


class _Waiting(NamedTuple, Generic[T]):
    """One request that waits; ``number`` counts all that ever did."""

    number: int
    size: int
    item: T


class _Taken:
    """What the users have taken of one thing, requests or bytes, of which there are ``most``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_user: Counter[Hashable] = Counter()

    def total(self) -> int:
        """Return what all users have taken."""
        return self._by_user.total()

    def add(self, user: Hashable, more: int) -> None:
        """Add to what a user has taken, or give some of it back."""
        self._by_user[user] += more
        if not self._by_user[user]:
            del self._by_user[user]

    def largest_user(self) -> Hashable:
        """Return the user who has taken the most; some user has taken something."""
        return max(self._by_user, key=self._by_user.__getitem__)

    def lacks(self, more: int) -> int:
        """Return how much of ``more`` there is no room for."""
        return max(0, self.total() + more - self._most)

    def fits(self, user: Hashable, more: int) -> bool:
        """Return whether ``more`` is within half of what the others leave to a user."""
        own = self._by_user[user]
        return own + more <= (self._most - self.total() + own) // 2

    def gives_way(self, user: Hashable, more: int) -> bool:
        """Return whether the user who has taken the most keeps no less than this one has, once there is room."""
        most = max(self._by_user.values(), default=0)
        return self._by_user[user] + more <= most - self.lacks(more)


class RequestQueue(Generic[T]):
    """A queue of requests, as bytes or parsed, bounded in number and bytes."""

    def __init__(self, push_out: Callable[[T], None]) -> None:
        """``push_out`` gets each item that loses its place."""
        self._push_out = push_out
        #: The user and the connection whose turn is next come first.
        self._users: dict[Hashable, dict[Hashable, deque[_Waiting[T]]]] = {}
        self._numbers = _Taken(MAX_WAITING)
        self._bytes = _Taken(MAX_WAITING_BYTES)
        self._count = 0
        self._bell = Bell()

    def put(self, item: T, size: int, requester: Requester) -> bool:
        """Add a request of so many bytes; return False if the queue has no room for it, and no user gives way."""
        user, connection = requester
        measures = (self._numbers, 1), (self._bytes, size)
        if not all(taken.fits(user, more) or taken.gives_way(user, more) for taken, more in measures):
            return False
        for taken, more in measures:
            while taken.lacks(more):
                self._drop_newest(taken.largest_user())
        self._count += 1
        self._users.setdefault(user, {}).setdefault(connection, deque()).append(_Waiting(self._count, size, item))
        self._numbers.add(user, 1)
        self._bytes.add(user, size)
        self._bell.ring()
        return True

    def __len__(self) -> int:
        return self._numbers.total()

    async def take_item(self) -> T:
        """Wait for the next item, and return it."""
        while not self._users:
            await self._bell.wait()
        user = next(iter(self._users))
        connections = self._users.pop(user)
        connection = next(iter(connections))
        queue = connections.pop(connection)
        waiting = queue.popleft()
        if queue:
            connections[connection] = queue
        if connections:
            self._users[user] = connections
        self._give_back(user, waiting)
        return waiting.item

    def _drop_newest(self, user: Hashable) -> None:
        connections = self._users[user]
        connection = max(connections, key=lambda each: connections[each][-1].number)
        waiting = connections[connection].pop()
        if not connections[connection]:
            del connections[connection]
        if not connections:
            del self._users[user]
        self._give_back(user, waiting)
        self._push_out(waiting.item)

    def _give_back(self, user: Hashable, waiting: _Waiting[T]) -> None:
        self._numbers.add(user, -1)
        self._bytes.add(user, -waiting.size)
