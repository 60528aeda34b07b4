"""SASL PLAIN (RFC 4616): a name and a password, checked against a file of salted hashes (``users_file``).

Without encryption it serves only peers that the listener's ``allowInsecurePlain`` admits. A check takes long, so checks
run in few threads, of lower priority than the event loop, with a short queue; if that is full, peers are refused
for now. If the file changes, users that were removed, disabled or have expired lose their connections.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import trio

from trouter.hooks import (
    Authenticated,
    Challenge,
    ListenerFacts,
    PeerFacts,
    Refused,
    RouterFacts,
    SaslExchange,
    hookimpl,
)
from trouter.mechanisms import PLAIN
from trouter_plugins.background import in_background
from trouter_plugins.users import Users
from trouter_plugins.users_file import UsersStore, open_store

MECHANISM: Final = PLAIN
MAX_RESPONSE_BYTES: Final = 1024

#: Threads that hash at once, and peers that may wait for one (security.md 8.2).
HASHING_THREADS: Final = 2 * (os.cpu_count() or 1)
MAX_WAITING: Final = 64


class Plugin:
    """The users of one router."""

    def __init__(self) -> None:
        self._store: UsersStore | None = None
        self._hashing = trio.CapacityLimiter(HASHING_THREADS)

    @hookimpl
    def configure(self, router: RouterFacts) -> None:
        self._store = open_store(router)

    @hookimpl
    def refresh(self) -> bool:
        return self._store is not None and self._store.refresh()

    @hookimpl
    def sasl_mechanisms(self, listener: ListenerFacts) -> Sequence[str]:
        if self._store is None:
            return ()
        return (MECHANISM,)

    @hookimpl
    def open_sasl(self, mechanism: str, peer: PeerFacts) -> SaslExchange | None:
        if mechanism != MECHANISM or self._store is None or not peer.may_send_password:
            return None
        return PlainExchange(self._store.users, self._hashing, self._admits)

    def _admits(self, user: str) -> bool:
        return self._store is not None and self._store.users.admits(user)


class Credentials(NamedTuple):
    """The content of a PLAIN response. The repr shows no password."""

    authorization_id: str
    user: str
    password: bytes

    def __repr__(self) -> str:
        return f"Credentials({self.user!r})"


class PasswordExchange(ABC):
    """One login: it requests the response if none came with the init, and is over after judging one."""

    def __init__(self) -> None:
        self._challenged = False
        self._over = False

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        if self._over:
            return Refused("the exchange is over")
        if not response and not self._challenged:
            self._challenged = True
            return Challenge(b"")
        self._over = True
        credentials = parse_response(response)
        if credentials is None or not self._is_acceptable(credentials.user):
            return Refused("malformed PLAIN response")
        if credentials.authorization_id not in {"", credentials.user}:
            requested = credentials.authorization_id
            return Refused("the authorization id is not the user", user=credentials.user, authorization_id=requested)
        return await self._judge(credentials.user, credentials.password)

    def _is_acceptable(self, user: str) -> bool:
        """Return whether the name can be a user's."""
        return True

    @abstractmethod
    async def _judge(self, user: str, password: bytes) -> Authenticated | Refused:
        """Return the answer to a user and password."""


class PlainExchange(PasswordExchange):
    """An attempt that is checked against the users' file."""

    def __init__(
        self, users: Users, hashing: trio.CapacityLimiter, admits: Callable[[str], bool] | None = None
    ) -> None:
        """``admits`` returns whether a user may stay, by the users at the time of the call."""
        super().__init__()
        self._users = users
        self._hashing = hashing
        self._admits = users.admits if admits is None else admits

    async def _judge(self, user: str, password: bytes) -> Authenticated | Refused:
        if self._hashing.statistics().tasks_waiting >= MAX_WAITING:
            return Refused("too many passwords are being checked", temporary=True, user=user)
        right = await in_background(self._users.verify, user, password, limiter=self._hashing)
        if not right:
            return Refused("wrong user or password", user=user)
        return Authenticated(user, still_good=partial(self._admits, user))


def parse_response(response: bytes, longest: int = MAX_RESPONSE_BYTES) -> Credentials | None:
    """Return the three parts of a PLAIN response; None if it is over-long, not UTF-8, not three parts, or lacks one."""
    if len(response) > longest:
        return None
    try:
        parts = response.decode().split("\0")
    except UnicodeDecodeError:
        return None  # the exception holds the response: it must not travel
    if len(parts) != 3 or not parts[1] or not parts[2]:
        return None
    return Credentials(parts[0], parts[1], parts[2].encode())
