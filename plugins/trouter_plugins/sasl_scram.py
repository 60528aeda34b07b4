"""SASL SCRAM (RFC 5802, RFC 7677): the client proves its password without sending it, and the router its verifier.

It serves users with a verifier in the users file (``users_file``), and SHA-1 only on listeners that name it. The -PLUS
variants bind the exchange to the TLS channel, so that no third party can relay it; connections without data for channel
binding do not offer them. An unknown user goes through the same steps, with a salt of its own, and gets the refusal of
a known user with a wrong password.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

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
from trouter.mechanisms import BOUND, mechanism_of
from trouter_plugins.users import Users
from trouter_plugins.users_file import UsersStore, open_store

if TYPE_CHECKING:
    from scramp import ScramServer

#: The longest message of a client: a name of 255 bytes, a nonce, and a proof fit several times.
MAX_MESSAGE_BYTES: Final = 2048
#: What a channel can be bound by.
BINDING_TYPES: Final = frozenset({"tls-server-end-point", "tls-unique"})


class Plugin:
    """The users of one router."""

    def __init__(self) -> None:
        self._store: UsersStore | None = None

    @hookimpl
    def configure(self, router: RouterFacts) -> None:
        store = open_store(router)
        if store is not None:
            importlib.import_module("scramp")  # takes its time, which no peer has to wait for
        self._store = store

    @hookimpl
    def refresh(self) -> bool:
        return self._store is not None and self._store.refresh()

    @property
    def _users(self) -> Users | None:
        return None if self._store is None else self._store.users

    def _admits(self, user: str) -> bool:
        return self._users is not None and self._users.admits(user)

    @hookimpl
    def sasl_mechanisms(self, listener: ListenerFacts) -> Sequence[str]:
        users = self._users
        known = () if users is None else users.scram_mechanisms
        offered = [name + end for end in (BOUND, "") for name in known]
        named = {name.upper() for name in listener.sasl_mechanisms}
        return [name for name in offered if not mechanism_of(name).weak or name in named]

    @hookimpl
    def open_sasl(self, mechanism: str, peer: PeerFacts) -> SaslExchange | None:
        users = self._users
        if users is None or mechanism.removesuffix(BOUND) not in users.scram_mechanisms:
            return None
        bindings = {kind: data for kind, data in peer.channel_bindings if kind in BINDING_TYPES}
        bound = mechanism.endswith(BOUND)
        if bound and not bindings:
            return None
        named = {name.upper() for name in peer.listener.sasl_mechanisms}
        plus_offered = bool(bindings) and (not named or any(name.endswith(BOUND) for name in named))
        known = bindings if bound else {}
        return ScramExchange(mechanism, users, known, plus_offered=plus_offered, admits=self._admits)


class ScramExchange:
    """The server's side: first message, proof, and the empty word that takes our own proof in."""

    def __init__(
        self,
        mechanism: str,
        users: Users,
        bindings: dict[str, bytes],
        *,
        plus_offered: bool = False,
        admits: Callable[[str], bool] | None = None,
    ) -> None:
        """``plus_offered``: a client that believes otherwise has been lied to. ``admits``: which users may stay."""
        self._admits = users.admits if admits is None else admits
        self._mechanism = mechanism
        self._users = users
        self._bindings = bindings
        self._plus_offered = plus_offered
        self._server: ScramServer | None = None
        self._user = ""
        self._real = False
        self._challenged = False
        self._proven = False
        self._over = False
        self._acts_for = ""

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        if self._over:
            return Refused("the exchange is over")
        if not response and self._server is None and not self._challenged:
            self._challenged = True
            return Challenge(b"")
        answer = self._step(response)
        self._over = not isinstance(answer, Challenge)
        return answer

    def _step(self, response: bytes) -> Challenge | Authenticated | Refused:
        from scramp import ScramException  # noqa: PLC0415 - only logins by SCRAM need its tables

        if self._proven:
            return Refused("words after the proof", user=self._user) if response else self._in()
        if len(response) > MAX_MESSAGE_BYTES:
            return Refused("an over-long SCRAM message", user=self._user)
        try:
            text = response.decode()
            if self._server is None:
                return Challenge(self._begin(text).encode())
            return Challenge(self._end(self._server, text).encode(), user=self._user)
        except (ScramException, UnicodeError):
            known = self._server is not None
            reason = "wrong user or password" if known else "malformed SCRAM message"
            return Refused(reason, user=self._user, authorization_id=self._acts_for)

    def _in(self) -> Authenticated:
        return Authenticated(self._user, still_good=partial(self._admits, self._user))

    def _begin(self, message: str) -> str:
        """Answer the client's first message; ScramException, UnicodeError."""
        from scramp import ScramException, ScramMechanism  # noqa: PLC0415

        flag, _, rest = message.partition(",")
        self._acts_for = rest.partition(",")[0].removeprefix("a=")
        if flag == "y" and self._plus_offered:
            raise ScramException("a host in between has hidden from the client that the channel can be bound")
        kind = flag.removeprefix("p=") if flag.startswith("p=") else ""
        binding = (kind, self._bindings[kind]) if kind in self._bindings else None
        if (binding is None) is self._mechanism.endswith(BOUND):
            raise ScramException("bound otherwise than the mechanism says")
        server = ScramMechanism(self._mechanism).make_server(self._look_up, channel_binding=binding)
        server.set_client_first(message)
        self._server = server
        return str(server.get_server_first())

    def _look_up(self, user: str) -> tuple[bytes, bytes, bytes, int]:
        self._user = user
        verifier, self._real = self._users.scram(self._mechanism.removesuffix(BOUND), user)
        return verifier.salt, verifier.stored_key, verifier.server_key, verifier.iterations

    def _end(self, server: ScramServer, message: str) -> str:
        """Judge the client's proof, and give ours; ScramException."""
        from scramp import ScramException  # noqa: PLC0415

        server.set_client_final(message)
        if not self._real:
            raise ScramException("no such user")
        self._proven = True
        return str(server.get_server_final())
