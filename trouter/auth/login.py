"""The login of a peer that dialled the router: a plugin answers each SASL step, with deadlines and lockout.

Neither the code nor the time of a refusal distinguishes a wrong password from a user who is unknown, disabled or locked
out. Only a failure that is not the peer's has a code of its own: temporary.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

import trio

from trouter.admission.guard import Guard
from trouter.admission.handshakes import Newcomer
from trouter.admission.turns import LOGINS_AT_ONCE
from trouter.engine.events import Event, SaslInitReceived, SaslMechanismsWanted, SaslResponseReceived
from trouter.engine.sasl import SASL_AUTH, SASL_OK, SASL_SYS_TEMP, SaslServer
from trouter.hooks import (
    Authenticated,
    AuthService,
    AuthSession,
    Challenge,
    PeerFacts,
    Permissions,
    Plugins,
    Refused,
    SaslExchange,
)
from trouter.records import Alarm, SaslOutcomeRecord
from trouter.telemetry.recorder import Recorder

from .tried import MAX_TRIED, TriedName

log = logging.getLogger("trouter.SERVER")

#: The most characters of a user's and a mechanism's name in the log.
MAX_NAME: Final = 128
_MECHANISM: Final = re.compile(r"[A-Za-z0-9_-]+")
THROTTLED: Final = "too many failures"
UNSERVED: Final = "no plugin serves the mechanism"
TOO_SLOW: Final = "the authentication took too long"
EXPIRED: Final = "the credentials have expired"
LOCKED: Final = "the user is locked out"
NO_SERVICE: Final = Refused("no plugin speaks to the authentication service", temporary=True)
#: The names of these in records; any other refusal is of the credentials, or of an unavailable service.
REASONS: Final = {
    THROTTLED: "throttled",
    UNSERVED: "unknown-mechanism",
    TOO_SLOW: "timeout",
    EXPIRED: "expired",
    LOCKED: "locked",
}


def _bare(mechanism: str) -> str:
    """Return a mechanism's name for the log, quoted if it is invalid."""
    shown = mechanism[:MAX_NAME]
    return shown if _MECHANISM.fullmatch(shown) else repr(shown) if shown else "none"


Answer: TypeAlias = Challenge | Authenticated | Refused


class AcceptedLogin:
    """The login of one accepted connection: the SASL exchange with the peer, in order and in time.

    Anything but a valid acceptance refuses the peer. Until its open the peer is a ``newcomer``.
    """

    __slots__ = (
        "_counted", "_exchange", "_guard", "_newcomer", "_offered", "_plugins", "_proven", "_recorder", "_sasl",
        "_scope", "_service", "_session", "_step_s", "_still_good", "_tried", "_unavailable", "_waited_s",
        "expires_at_s", "facts", "mechanism", "permissions", "refused", "tenant", "user",
    )  # fmt: skip

    outgoing: Final = False

    def __init__(
        self,
        facts: PeerFacts,
        plugins: Plugins,
        guard: Guard,
        sasl: SaslServer,
        step_s: float,
        scope: trio.CancelScope,
        service: AuthService | None,
        newcomer: Newcomer,
        recorder: Recorder,
    ) -> None:
        """Make a login; ``sasl`` is the engine's layer; a plugin has ``step_s`` seconds for each answer.

        The deadline of ``scope`` is that of the peer's handshake; it is extended by the seconds for which the router
        makes the peer wait. If the listener names an authentication service, ``service`` is that service, None if there
        is none.
        """
        self.facts = facts
        self._recorder = recorder
        #: Seconds for which the peer was made to wait.
        self._waited_s = 0.0
        #: The user, once accepted; and the mechanism that the peer chose.
        self.user = ""
        self.mechanism = ""
        #: The tenant that the login names.
        self.tenant = ""
        #: When the credentials end, by trio's clock.
        self.expires_at_s = float("inf")
        #: Returns whether the credentials are still valid.
        self._still_good: Callable[[], bool] | None = None
        #: The user's rights; None if the plugin gives none.
        self.permissions: Permissions | None = None
        self._plugins = plugins
        self._guard = guard
        #: None once the login has ended.
        self._sasl: SaslServer | None = sasl
        self.refused = False
        self._step_s = step_s
        self._scope = scope
        #: None once the peer has sent its open, or the login has ended.
        self._newcomer: Newcomer | None = newcomer
        self._exchange: SaslExchange | None = None
        self._service = service
        self._session: AuthSession | None = None
        self._unavailable = NO_SERVICE
        #: The mechanisms of the service that the peer was offered.
        self._offered: tuple[str, ...] = ()
        #: The user that was judged already and may enter.
        self._proven = ""
        #: The attempt was judged already and has failed.
        self._counted = False
        #: The name in the peer's messages, once there is one and until the login is over.
        self._tried: TriedName | None = None

    @property
    def sasl(self) -> SaslServer:
        """The engine's layer, until the login ends."""
        assert self._sasl is not None  # noqa: S101 - no event of a login comes after its end
        return self._sasl

    async def take_step(self, event: Event) -> bool:
        """Answer an event of the login; return whether more of the peer's input may be read."""
        newcomer, goes_on = self._newcomer, True
        if newcomer is not None:
            newcomer.note_wait(trio.current_time())
        if isinstance(event, SaslMechanismsWanted):
            await self._offer()
        elif isinstance(event, SaslInitReceived):
            goes_on = await self._begin(event)
        elif isinstance(event, SaslResponseReceived):
            goes_on = await self._respond(event.response)
        if newcomer is not None:
            newcomer.note_answer(trio.current_time())
        return goes_on

    def note_open(self) -> None:
        """Take the user of a peer without login from its certificate, at its open."""
        tls = self.facts.tls
        self.user = self.user or ("" if tls is None else tls.subject)

    async def _offer(self) -> None:
        """Offer the peer the mechanisms of the service; none if the service does not answer."""
        service = self._service
        if service is not None:
            session: AuthSession | Refused = Refused("the authentication service took too long", temporary=True)
            with trio.move_on_after(self._longest_s(service)):
                session = await self._plugins.objects.begin_or_refuse(service, self.facts)
            if isinstance(session, Refused):
                self._unavailable = session
            else:
                self._session = session
                self._offered = self._plugins.relayed_mechanisms(self.facts, session.mechanisms)
        self.sasl.offer_mechanisms(self._offered)

    def close(self) -> None:
        """End the login: release the newcomer, and the session with the service; a second call does nothing."""
        if self._newcomer is not None:
            self._guard.handshakes.end_handshake(self._newcomer)
            self._newcomer = None
        if self._sasl is not None:
            self.refused = self._sasl.refused
            self._sasl = None
        self._tried = None
        self._close_session()

    def _close_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    async def _begin(self, init: SaslInitReceived) -> bool:
        """Answer the peer's init; return whether the peer is admitted."""
        self.mechanism = init.mechanism.upper()
        self._tried = tried = TriedName(self.mechanism, self.facts)
        tried.begin(init.response or b"")
        if self.facts.listener.auth_service:
            return await self._conclude(await self._in_turn(partial(self._start, init)))
        self._exchange = self._plugins.open_sasl(init.mechanism, self.facts)
        return await self._conclude(await self._in_turn(partial(self._ask, init.response or b"")))

    async def _respond(self, response: bytes) -> bool:
        """Answer the peer's response; return whether the peer is admitted."""
        if self._tried is not None:
            self._tried.read(response)
        return await self._conclude(await self._in_turn(partial(self._ask, response)))

    async def _in_turn(self, step: Callable[[], Awaitable[Answer]]) -> Answer:
        """Wait as long as earlier failures from the host require, take the step, and return its answer."""
        host, lockout = self.facts.remote_host, self._guard.lockout
        place = lockout.busy_place(host)
        if not place:
            return await self._in_common_turn(step)
        while True:
            async with self._guard.turns.hold_turn(place, lockout.rules.delay_after):
                wait_s = 0.0 if self._waited_s else lockout.wait_s(host)
                if wait_s == 0:
                    return await step()
            if wait_s is None:
                return Refused(THROTTLED, temporary=True)
            await self._wait(wait_s)

    async def _in_common_turn(self, step: Callable[[], Awaitable[Answer]]) -> Answer:
        """Take the step when those that came before it have been taken; the peer's time stands still meanwhile."""
        began_s, scope = trio.current_time(), self._scope
        until_s, scope.deadline = scope.deadline, float("inf")
        try:
            if self._exchange is None:  # a service knows itself how many it serves; no plugin is asked
                return await step()
            async with self._guard.turns.hold_turn(type(self._exchange).__module__, LOGINS_AT_ONCE):
                return await step()
        finally:
            scope.deadline = until_s + trio.current_time() - began_s

    async def _conclude(self, answer: Answer) -> bool:
        """Judge the answer to a step and send the outcome; return whether the peer is admitted."""
        answer = await self._judge(self._named(answer))
        if isinstance(answer, Challenge):
            self.sasl.send_challenge(answer.data)
            return False
        self._close_session()
        if isinstance(answer, Refused):
            self._refuse(answer)
            return False
        self._record(SASL_OK, answer.user, "ok")
        self._still_good = answer.still_good
        self.user, self.tenant, self.permissions = answer.user, answer.tenant, answer.permissions
        self.sasl.send_outcome(SASL_OK, answer.data or None)
        return True

    def _named(self, answer: Answer) -> Answer:
        """Return the answer; a refusal gets the name that was tried, which the plugin may have left out."""
        if isinstance(answer, Challenge) and answer.refusal is not None:
            return replace(answer, refusal=self._with_name(answer.refusal))
        return self._with_name(answer) if isinstance(answer, Refused) else answer

    def _with_name(self, refusal: Refused) -> Refused:
        return replace(refusal, user=(refusal.user or self._tried_name())[:MAX_TRIED])

    def _tried_name(self) -> str:
        return "" if self._tried is None else self._tried.name

    async def _judge(self, answer: Answer) -> Answer:
        """Return the answer that counts, after the wait that earlier failures require.

        A mechanism may prove with its last challenge that it knows the password, or say with it that it refuses, so
        these are judged too.
        """
        if isinstance(answer, Authenticated) and answer.expires_at_s is not None:
            left_s = answer.expires_at_s - time.time()
            self.expires_at_s = trio.current_time() + left_s
            if not left_s > 0:
                answer = Refused(EXPIRED, user=answer.user)
        proof = answer.refusal or answer if isinstance(answer, Challenge) else answer
        right = not isinstance(proof, Refused)
        if (isinstance(proof, Challenge) and not proof.user) or (isinstance(proof, Refused) and proof.temporary):
            return answer
        if self._counted or (right and proof.user == self._proven):
            return answer
        self._counted = not right
        verdict = self._guard.lockout.judge_attempt(
            self.facts.remote_host, proof.user, right=right, tried=self._tried_name(), waited_s=self._waited_s
        )
        if verdict.began:
            self._log_lock(proof.user)
        if verdict.wait_s is None:
            return Refused(THROTTLED, temporary=True, user=proof.user)
        await self._wait(verdict.wait_s)
        if right and verdict.locked:
            return Refused(LOCKED, user=proof.user)
        self._proven = proof.user if right else ""
        return answer

    async def _wait(self, wait_s: float) -> None:
        """Wait ``wait_s`` seconds, and extend the peer's time for its handshake by as much."""
        if wait_s > 0:
            self._waited_s += wait_s
            self._scope.deadline += wait_s
            await trio.sleep(wait_s)

    def is_good(self) -> bool:
        """Return whether the credentials are still valid; False if the plugin fails."""
        if self._still_good is None:
            return True
        try:
            return self._still_good() is True
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            kind, number = type(error).__qualname__, self.facts.connection_id
            log.error("[C%d] cannot check whether the credentials of the peer are still valid: %s", number, kind)
            return False

    async def _ask(self, response: bytes) -> Answer:
        """Return the answer of the plugin, or a refusal if it does not answer in time."""
        exchange = self._session or self._exchange
        if exchange is None:
            return Refused(UNSERVED)
        with trio.move_on_after(self._step_s if self._service is None else self._longest_s(self._service)):
            return await self._plugins.objects.respond_or_refuse(exchange, response)
        return Refused(TOO_SLOW, temporary=True)

    async def _start(self, init: SaslInitReceived) -> Answer:
        """Return the answer of the service to the mechanism that the peer chose."""
        service, session = self._service, self._session
        if service is None or session is None:
            return self._unavailable
        if init.mechanism.upper() not in (name.upper() for name in self._offered):
            return Refused(UNSERVED)
        with trio.move_on_after(self._longest_s(service)):
            return await self._plugins.objects.start_or_refuse(session, init.mechanism, init.response)
        return Refused(TOO_SLOW, temporary=True)

    def _longest_s(self, service: AuthService) -> float:
        """Return the seconds that a service may take for a step: its verdict, its open, and one more."""
        return max(self._step_s, 2 * service.facts.timeout_s + 1)

    def _refuse(self, refusal: Refused) -> None:
        """Refuse the peer. The outcome says only whether it may try again later."""
        if refusal.reason == THROTTLED:
            self._guard.handshakes.count_failed_login(self.facts.remote_host)
        code = SASL_SYS_TEMP if refusal.temporary else SASL_AUTH
        reason = REASONS.get(refusal.reason) or ("service" if refusal.temporary else "bad-credentials")
        self._record(code, refusal.user, reason, refusal.authorization_id)
        self.sasl.send_outcome(code)
        facts = self.facts
        self._recorder.denials.login(reason, refusal.user, facts.remote_host, facts.listener.name, self.mechanism)
        log.info(
            "[C%d] Connection from %s:%d (to %s:%s) failed: amqp:unauthorized-access Authentication failed "
            "[mech=%s] user=%.128r listener=%r: %s",
            facts.connection_id,
            facts.remote_host,
            facts.remote_port,
            facts.listener.host,
            facts.listener.port,
            _bare(self.mechanism),
            refusal.user,
            facts.listener.name,
            refusal.reason,
        )

    def _log_lock(self, user: str) -> None:
        rules = self._guard.lockout.rules
        alarm = Alarm(
            name="auth-lockout",
            severity="warning",
            subject=f"{user} at {self.facts.remote_host}",
            state="raised",
            value=rules.mode,
            limit=str(rules.lock_after),
        )
        self._recorder.alarm(alarm)
        what = "would be" if rules.mode == "alarm" else "is"
        log.warning(
            "[C%d] user %r %s locked out at %s for %g s: %d failed logins within %g s",
            self.facts.connection_id,
            user[:MAX_NAME],
            what,
            self.facts.remote_host,
            rules.lock_s,
            rules.lock_after,
            rules.lock_window_s,
        )

    def _record(self, code: int, user: str, reason: str, authorization_id: str = "") -> None:
        """Record the acceptance or refusal of the user, with no more of the peer's input than names."""
        exchange, self._exchange = self._exchange, None
        facts = self.facts
        plugin = "" if exchange is None else type(exchange).__module__.rpartition(".")[2]
        self._recorder.emit(
            SaslOutcomeRecord(
                conn=facts.connection_id,
                user=user or None,
                authz=authorization_id or None,
                host=facts.remote_host,
                listener=facts.listener.name or None,
                tls_subject=(facts.tls.subject or None) if facts.tls is not None else None,
                mech=self.mechanism,
                ok=code == SASL_OK,
                code=code,
                reason=reason,
                delay_us=int(self._waited_s * 1_000_000),
                plugin=facts.listener.auth_service or plugin,
            )
        )
