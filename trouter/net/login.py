"""How whoever dialled us logs in: the answers of plugins to what the peer says in SASL, in its turn and in time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import trio

from trouter.engine.events import SaslInitReceived
from trouter.engine.sasl import SASL_AUTH, SASL_OK, SASL_SYS_TEMP, SaslServer
from trouter.hooks import Authenticated, Challenge, PeerFacts, Plugins, Refused, SaslExchange

from .guard import LoginGuard

log = logging.getLogger("trouter.SERVER")


class Login:
    """The SASL conversation with one peer; whatever is not a clear yes is a no."""

    def __init__(self, facts: PeerFacts, plugins: Plugins, guard: LoginGuard, sasl: SaslServer, step_s: float) -> None:
        """``sasl`` is the engine's side of it; a plugin has ``step_s`` seconds for each answer."""
        self.facts = facts
        #: Who the peer is, once it is in; and the mechanism that it chose.
        self.user = ""
        self.mechanism = ""
        #: The tenant that the login says the user belongs to.
        self.tenant = ""
        #: When the credentials end, by the clock of the event loop.
        self.expires_at_s = float("inf")
        #: Says whether the credentials are good still.
        self._still_good: Callable[[], bool] | None = None
        self._plugins = plugins
        self._guard = guard
        self._sasl = sasl
        self._step_s = step_s
        self._exchange: SaslExchange | None = None

    async def begin(self, init: SaslInitReceived) -> bool:
        """The first step, when its turn has come; whether the peer is in."""
        self.mechanism = init.mechanism
        wait_s = self._guard.wait_s(self.facts.remote_host)
        if wait_s is None:
            self._refuse(Refused("too many failures", temporary=True))
            return False
        if wait_s > 0:
            await trio.sleep(wait_s)
        self._exchange = self._plugins.open_sasl(init.mechanism, self.facts)
        return await self.respond(init.response or b"")

    async def respond(self, response: bytes) -> bool:
        """One step of the exchange; whether the peer is in."""
        answer = await self._ask(response)
        if isinstance(answer, Challenge):
            self._sasl.challenge(answer.data)
            return False
        self._exchange = None
        if isinstance(answer, Authenticated) and answer.expires_at_s is not None:
            left_s = answer.expires_at_s - time.time()
            self.expires_at_s = trio.current_time() + left_s
            if not left_s > 0:
                answer = Refused("the credentials have expired", user=answer.user)
        if isinstance(answer, Refused):
            self._refuse(answer)
            return False
        self.user = answer.user
        self._still_good = answer.still_good
        self.tenant = answer.tenant
        self._sasl.finish(SASL_OK, answer.data or None)
        return True

    def good(self) -> bool:
        """Whether the credentials are good still; what cannot be told is a no."""
        if self._still_good is None:
            return True
        try:
            return self._still_good() is True
        except Exception as error:  # noqa: BLE001 - a plugin's word may fail in any way
            kind, number = type(error).__qualname__, self.facts.connection_id
            log.error("[C%d] whether its credentials are good cannot be told: %s", number, kind)
            return False

    async def _ask(self, response: bytes) -> Challenge | Authenticated | Refused:
        """What the plugin says, or the refusal that stands for its silence."""
        if self._exchange is None:
            return Refused("no plugin serves the mechanism")
        with trio.move_on_after(self._step_s):
            return await self._plugins.respond_or_refuse(self._exchange, response)
        return Refused("the authentication took too long", temporary=True)

    def _refuse(self, refusal: Refused) -> None:
        """Turn the peer away; it learns only whether to come back later."""
        facts = self.facts
        if not refusal.temporary:
            self._guard.failed(facts.remote_host)
        self._sasl.finish(SASL_SYS_TEMP if refusal.temporary else SASL_AUTH)
        log.info(
            "[C%d] Connection from %s:%d refused: SASL %s",
            facts.connection_id,
            facts.remote_host,
            facts.remote_port,
            self.mechanism[:32],
        )
