"""SASL through Cyrus SASL, with the mechanisms configured for it, such as GSSAPI, or the users of a sasldb.

It serves if `saslConfigDir` names a folder with a file `saslConfigName`.conf, or if the library finds that file where
it looks itself. Other plugins serve ANONYMOUS and EXTERNAL. With secureDefaults only listeners that name a weak
mechanism offer it. A thread calls the library, one call at a time, within a deadline. After the exchange there is no
security layer: TLS protects the connection.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from trouter.hooks import (
    Authenticated,
    Challenge,
    ConfigurationRefused,
    ConnectorFacts,
    ListenerFacts,
    PeerFacts,
    Refused,
    RouterFacts,
    SaslClientExchange,
    SaslExchange,
    hookimpl,
)
from trouter.mechanisms import ANONYMOUS, EXTERNAL, STANDARD, Mechanism, mechanism_of

if TYPE_CHECKING:
    from trouter_plugins.cyrus_library import Call, Conversation, Library, Step

MAX_RESPONSE_BYTES: Final = 16000
MAX_USER_BYTES: Final = 255
MAX_WAITING: Final = 64
#: Shorter than the router's deadline for an exchange, so that the peer gets the refusal.
DEADLINE_S: Final = 8.0

#: Served by other plugins.
NOT_OURS: Final = frozenset({ANONYMOUS, EXTERNAL})
SCRAM_HASHES: Final = {str(each): each.digest for each in STANDARD.values() if each.digest and not each.bound}
#: As the library does it; its salt is as long as the hash, and stays the same for a user while the process lives.
ITERATIONS: Final = 4096
NONCE_BYTES: Final = 24
#: Workers have a key each, as the library has for the salts of its users.
_DECOY_KEY: Final = secrets.token_bytes(32)
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")

log = logging.getLogger("trouter.PLUGIN")


class Unreadable(ConfigurationRefused):
    """The configuration of Cyrus SASL cannot be read."""


class Cyrus:
    """The library of this process, and the lock of its calls."""

    library: Library | None = None
    source: tuple[str, str] | None = None
    mechanisms: tuple[str, ...] = ()
    #: What it can do as a client.
    client_mechanisms: frozenset[str] = frozenset()
    #: Allows one call at a time, of all exchanges.
    calling: Final = trio.CapacityLimiter(1)

    @classmethod
    def start(cls, folder: str, name: str) -> None:
        """Start the library with this configuration; ConfigurationRefused."""
        if cls.source == (folder, name):
            return
        if cls.source is not None:
            raise ConfigurationRefused("saslConfigDir and saslConfigName cannot change while the router runs")
        if not _NAME.fullmatch(name):
            raise ConfigurationRefused("saslConfigName is not the name of a file")
        path = Path(folder) / f"{name}.conf"
        try:
            path.read_bytes()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            raise Unreadable(f"saslConfigDir: {path}: {why}") from None
        try:
            from trouter_plugins.cyrus_library import CyrusError, Library  # noqa: PLC0415 - it may not be installed
        except ImportError:
            raise ConfigurationRefused("saslConfigDir needs the package cffi (trouter[cyrus])") from None
        try:
            library = Library(folder, name)
        except CyrusError as error:
            raise ConfigurationRefused(f"saslConfigDir: {error}") from None
        try:
            offered, client = library.mechanisms(), library.client_mechanisms()
            if not offered:
                raise CyrusError(f"Cyrus SASL has no mechanism to offer with {path}")
        except CyrusError as error:
            library.stop()  # so that it reads a corrected configuration
            raise ConfigurationRefused(f"saslConfigDir: {error}") from None
        cls.library, cls.source, cls.mechanisms = library, (folder, name), offered
        cls.client_mechanisms = frozenset(each.upper() for each in client)


class Plugin:
    """One router's use of the library."""

    def __init__(self) -> None:
        self._serves = False
        self._offers_weak = True

    @hookimpl
    def configure(self, router: RouterFacts) -> None:
        self._serves, self._offers_weak = False, not router.secure_defaults
        if router.sasl_config_dir is not None:
            try:
                Cyrus.start(router.sasl_config_dir, router.sasl_config_name)
            except Unreadable:
                if router.secure_defaults:
                    raise
                return  # the router reports it, as Qpid Dispatch does, and serves the rest
            except ConfigurationRefused as refusal:
                if router.sasl_config_named:
                    raise
                log.error("%s is not used: %s", router.sasl_config_dir, "; ".join(refusal.problems))
                return
            self._serves = True

    @hookimpl
    def sasl_mechanisms(self, listener: ListenerFacts) -> Sequence[str]:
        if not self._serves:
            return ()
        named = {name.upper() for name in listener.sasl_mechanisms}
        known = dict.fromkeys(name.upper() for name in Cyrus.mechanisms)
        return [name for name in known if name not in NOT_OURS and self._may_offer(mechanism_of(name), named)]

    def _may_offer(self, mechanism: Mechanism, named: Collection[str]) -> bool:
        return not mechanism.bound and (self._offers_weak or not mechanism.weak or mechanism in named)

    @hookimpl
    def open_sasl(self, mechanism: str, peer: PeerFacts) -> SaslExchange | None:
        if not self._serves or Cyrus.library is None or mechanism not in self.sasl_mechanisms(peer.listener):
            return None
        return CyrusExchange(mechanism, Cyrus.library, Cyrus.calling)

    @hookimpl
    def open_sasl_client(self, mechanisms: Sequence[str], connector: ConnectorFacts) -> SaslClientExchange | None:
        able = [name for name in mechanisms if name.upper() in Cyrus.client_mechanisms - NOT_OURS]
        if not self._serves or Cyrus.library is None or not able:
            return None
        return CyrusClient(able[0], Cyrus.library, connector)


class CyrusClient:
    """The router's login to one server, by one mechanism of the library."""

    def __init__(self, name: str, library: Library, connector: ConnectorFacts) -> None:
        self.name = name
        self._library = library
        self._connector = connector
        self._call: Call | None = None
        self._result = 0

    async def start(self) -> bytes | None:
        return await trio.to_thread.run_sync(self._start, limiter=Cyrus.calling, abandon_on_cancel=True)

    async def respond(self, challenge: bytes) -> bytes:
        return await trio.to_thread.run_sync(self._go_on, challenge, limiter=Cyrus.calling, abandon_on_cancel=True)

    async def finish(self, additional: bytes | None) -> bool:
        from trouter_plugins.cyrus_library import CONTINUE, OK  # noqa: PLC0415

        if self._result == CONTINUE and additional is not None:
            await self.respond(additional)
        return self._call is not None and self._result == OK

    def _start(self) -> bytes | None:
        from trouter_plugins.cyrus_library import CONTINUE, OK, CyrusError  # noqa: PLC0415

        facts = self._connector
        call = self._library.call(facts.host, facts.user, facts.password, plain=facts.may_send_password)
        _, self._result, response = call.start([self.name])
        if self._result not in {CONTINUE, OK}:
            raise CyrusError(f"Cyrus SASL cannot do {self.name} (result {self._result})")
        self._call = call
        return response

    def _go_on(self, challenge: bytes) -> bytes:
        from trouter_plugins.cyrus_library import CONTINUE, OK, CyrusError  # noqa: PLC0415

        if self._call is None or len(challenge) > MAX_RESPONSE_BYTES:
            raise CyrusError("the server broke the rules")
        step = self._call.go_on(challenge)
        self._result = step.result
        if step.result not in {CONTINUE, OK}:
            raise CyrusError(f"Cyrus SASL does not go on (result {step.result})")
        return step.data


class CyrusExchange:
    """One client's authentication, step by step, until the library accepts or refuses it."""

    def __init__(
        self, mechanism: str, library: Library, calling: trio.CapacityLimiter, deadline_s: float = DEADLINE_S
    ) -> None:
        self._mechanism = mechanism
        self._library = library
        self._calling = calling
        self._deadline_s = deadline_s
        self._conversation: Conversation | None = None
        #: The library does not know this user, who is to think that it does.
        self._doomed: Refused | None = None
        self._over = False

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        if self._over:
            return Refused("the exchange is over")
        self._over = True
        if len(response) > MAX_RESPONSE_BYTES:
            return Refused("an over-long response")
        if self._doomed is not None:
            return self._doomed
        if self._calling.statistics().tasks_waiting >= MAX_WAITING:
            return Refused("too many wait for Cyrus SASL", temporary=True)
        with trio.move_on_after(self._deadline_s):
            answer = await trio.to_thread.run_sync(self._step, response, limiter=self._calling, abandon_on_cancel=True)
            self._over = not isinstance(answer, Challenge)
            return answer
        return Refused("Cyrus SASL took too long", temporary=True)

    def _step(self, response: bytes) -> Challenge | Authenticated | Refused:
        """Make one call into the library; in a thread, when no other call is under way."""
        from trouter_plugins.cyrus_library import CONTINUE, NO_USER, OK, UNABLE, CyrusError  # noqa: PLC0415

        first = self._conversation is None
        try:
            step = self._take(response)
        except CyrusError as error:
            return Refused(str(error), temporary=True)
        if step.result == CONTINUE:
            return Challenge(step.data)
        if step.result == NO_USER and first and self._mechanism in SCRAM_HASHES:
            return self._pretend(response)
        if step.result != OK:
            return self._refusal(f"Cyrus SASL said no (result {step.result})", temporary=step.result in UNABLE)
        user = None if self._conversation is None else self._conversation.user()
        if not user or not user.isprintable() or len(user.encode()) > MAX_USER_BYTES:
            return self._refusal("Cyrus SASL let in a user without a name, or under another name")
        return Authenticated(user, step.data)

    def _refusal(self, reason: str, *, temporary: bool = False) -> Refused:
        """Return a refusal with the names that the library has read in the client's messages."""
        user, requested = ("", "") if self._conversation is None else self._conversation.tried()
        return Refused(reason, temporary, user, "" if requested == user else requested)

    def _take(self, response: bytes) -> Step:
        if self._conversation is not None:
            return self._conversation.go_on(response)
        self._conversation = self._library.converse()
        return self._conversation.start(self._mechanism, response or None)

    def _pretend(self, response: bytes) -> Challenge | Refused:
        """Return an answer like the library's for a known user; with as much work, so that it takes as long."""
        fields = {part[:2]: part[2:] for part in response.split(b",")}
        nonce, user = fields.get(b"r=", b""), fields.get(b"n=", b"")
        if not nonce:
            return self._refusal("malformed SCRAM message")
        name = SCRAM_HASHES[self._mechanism]
        salt = hmac.digest(_DECOY_KEY, name.encode() + user, name)
        hashlib.pbkdf2_hmac(name, user, salt, ITERATIONS)
        self._doomed = self._refusal("wrong user or password")
        ours = base64.b64encode(secrets.token_bytes(NONCE_BYTES))
        return Challenge(b"r=%b%b,s=%b,i=%d" % (nonce, ours, base64.b64encode(salt), ITERATIONS))
