"""Calls the objects that plugins made, such as exchanges and consumers, so that a broken one can only deny.

An exception or an answer of the wrong type is counted and logged as a fault of the plugin, and becomes a refusal.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from trouter.hooks.answers import is_mechanism_list, is_sasl_answer
from trouter.hooks.consumers import Consumer, Decision, IncomingMessage, Rejected
from trouter.hooks.facts import PeerFacts
from trouter.hooks.faults import Faults
from trouter.hooks.loading import PluginError
from trouter.hooks.registration import Registration
from trouter.hooks.sasl import (
    Authenticated,
    AuthService,
    AuthSession,
    Challenge,
    Refused,
    SaslClientExchange,
    SaslExchange,
)
from trouter.hooks.tracing import EndedSpan, MessageTracer


class PluginObjects:
    """The caller of the objects that one router's plugins make."""

    def __init__(self, registered: Registration, faults: Faults) -> None:
        self._registered = registered
        self._faults = faults

    async def respond_or_refuse(
        self, exchange: SaslExchange | AuthSession, response: bytes
    ) -> Challenge | Authenticated | Refused:
        """Return ``exchange.respond(response)``; an exception or a wrong answer is a temporary refusal.

        The caller sets the deadline; its cancellation passes through. Only the type and place of an exception are
        logged, as its text may quote the peer's secret.
        """
        return await self._answer_or_refuse("respond", exchange, lambda: exchange.respond(response))

    async def start_or_refuse(
        self, session: AuthSession, mechanism: str, response: bytes | None
    ) -> Challenge | Authenticated | Refused:
        """Return ``session.start(mechanism, response)``; an exception or a wrong answer is a temporary refusal."""
        return await self._answer_or_refuse("start", session, lambda: session.start(mechanism, response))

    async def begin_or_refuse(self, service: AuthService, peer: PeerFacts) -> AuthSession | Refused:
        """Return ``service.begin(peer)``; an exception or a wrong answer is a temporary refusal.

        The caller sets a deadline, and offers ``peer`` the session's mechanisms that ``relayed_mechanisms`` returns.
        """
        try:
            session: object = await service.begin(peer)
            match session:
                case Refused(str(), bool(), str()):
                    return session
                case AuthSession():
                    if is_mechanism_list(session.mechanisms):
                        return session
                    session.close()
        except Exception as error:  # noqa: BLE001 - whatever it is, it denies
            self._faults.failed("begin", service, "an authentication service", error)
            return Refused("the authentication plugin failed", temporary=True)
        self._faults.rubbish("begin", session, self._registered.owner_of(service))
        return Refused("the authentication plugin gave no valid answer", temporary=True)

    async def _answer_or_refuse(
        self, what: str, called: object, query: Callable[[], Awaitable[object]]
    ) -> Challenge | Authenticated | Refused:
        try:
            answer = await query()
        except Exception as error:  # noqa: BLE001 - whatever it is, it denies
            self._faults.failed(what, called, "a SASL exchange", error)
            return Refused("the authentication plugin failed", temporary=True)
        if is_sasl_answer(answer):
            return answer
        self._faults.rubbish(what, answer, self._registered.owner_of(called))
        return Refused("the authentication plugin gave no valid answer", temporary=True)

    async def client_answer(self, exchange: SaslClientExchange, challenge: bytes | None) -> bytes | None:
        """Return the answer of ``exchange`` to a challenge, or its initial response if that is None; PluginError.

        The caller sets the deadline. The text of an exception is dropped, as it may quote a secret.
        """
        try:
            answer: object = await (exchange.start() if challenge is None else exchange.respond(challenge))
        except Exception as error:  # noqa: BLE001 - whatever it is, it denies
            self._faults.failed("open_sasl_client", exchange, "a SASL client", error)
            raise PluginError("the plugin that logs the router in failed") from None
        if isinstance(answer, bytes) or (answer is None and challenge is None):
            return answer
        self._faults.rubbish("open_sasl_client", answer, self._registered.owner_of(exchange))
        raise PluginError("the plugin that logs the router in gave no valid answer")

    async def client_is_satisfied(self, exchange: SaslClientExchange, additional: bytes | None) -> bool:
        """Return whether the server has proven itself as the mechanism demands; False if the plugin fails."""
        try:
            return await exchange.finish(additional) is True
        except Exception as error:  # noqa: BLE001 - whatever it is, it denies
            self._faults.failed("open_sasl_client", exchange, "a SASL client", error)
            return False

    def consume(self, consumer: Consumer, message: IncomingMessage) -> Decision | Rejected:
        """Return a consumer's answer to a message; a fault of the consumer rejects the message."""
        try:
            answer: object = consumer.consume(message)
        except Exception as error:  # noqa: BLE001 - whatever it is, it denies
            self._faults.failed("consumers", consumer, "a consumer", error)
            return Rejected("the plugin that takes messages here failed", "amqp:internal-error")
        match answer:
            case Decision(str(), str(), str(), int()) | Rejected(str(), str()):
                return answer
        self._faults.rubbish("consumers", answer, self._registered.owner_of(consumer))
        return Rejected("the plugin that takes messages here gave no valid answer", "amqp:internal-error")

    def export_spans(self, tracer: MessageTracer, spans: Sequence[EndedSpan], dropped: int) -> None:
        """Pass spans to a tracer; a fault loses them."""
        try:
            tracer.export(spans, dropped)
        except Exception as error:  # noqa: BLE001 - the messages have passed
            self._faults.failed("message_tracer", tracer, "a tracer", error)
