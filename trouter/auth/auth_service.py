"""A remote authentication service: the router connects to it once for each peer (security.md 3.1).

The service's mechanisms go to the peer; the peer's choice and responses and the service's challenges are passed on
unchanged. Once the service accepts the login, the router opens, and the properties of the service's open name the user
and its rights. Then the socket is dropped. If anything goes wrong, the peer is refused with a temporary outcome.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import trio

import trouter
from trouter.engine.connection import Connection
from trouter.engine.events import (
    ConnectionClosed,
    ConnectionOpened,
    Event,
    SaslChallengeReceived,
    SaslFinished,
    SaslMechanismsOffered,
)
from trouter.engine.limits import EngineLimits
from trouter.engine.sasl import SASL_OK, SASL_SYS_TEMP, SaslClient
from trouter.hooks import (
    Authenticated,
    AuthServiceFacts,
    AuthSession,
    Challenge,
    PeerFacts,
    Refused,
)
from trouter.mechanisms import mechanism_of
from trouter.net.dialing import Endpoint, cause, connect
from trouter.records import Alarm
from trouter.telemetry.recorder import Recorder
from trouter.tls.problems import TlsFailed
from trouter.tls.secure import Secure
from trouter.wire.performatives import Open
from trouter.wire.types import ArrayForm

from .breaker import Breaker
from .grants import BadGrant, permissions_of, user_of

#: Limits of a service's frames: its open has an entry for each address that the user may use.
LIMITS: Final = EngineLimits(
    max_frame_bytes=1024 * 1024, max_open_frame_bytes=1024 * 1024, max_open_nodes=65536, idle_timeout_s=0.0
)
#: Tells the service that the router applies rights; an array, because services for Qpid Dispatch expect one.
CAPABILITIES: Final = ArrayForm(("ADDRESS-AUTHZ",))
READ_BYTES: Final = 65536

log = logging.getLogger("trouter.AUTHSERVICE")


class _Failure(Exception):
    """The service failed; the text describes how, without quoting it."""


@dataclass(frozen=True, slots=True)
class ServiceTerms:
    """The terms of a service: how to reach and verify it, and how strictly to read its answers."""

    facts: AuthServiceFacts
    #: The sslProfile that verifies the service, empty for a service without TLS.
    ssl_profile: str = ""
    #: Its certificate must be for its host.
    verify_hostname: bool = True
    #: All forms that existing services use are accepted; with secureDefaults only the documented one.
    lenient: bool = False
    #: Services that may get passwords without encryption: "no" for none, "loopback" for those on this machine, "yes".
    allow_insecure_plain: str = "loopback"
    #: A service without rights in its answer leaves them to the policy; else the user has none.
    authz_optional: bool = False


class RemoteAuthService:
    """One configured authentication service."""

    def __init__(
        self, terms: ServiceTerms, secure: Secure, recorder: Recorder, now: Callable[[], float] = trio.current_time
    ) -> None:
        """Make a service; ``now`` is the breaker's clock, in seconds."""
        self.terms = terms
        self.breaker = Breaker(self._log_state, now)
        self._secure = secure
        self._recorder = recorder

    @property
    def facts(self) -> AuthServiceFacts:
        return self.terms.facts

    async def begin(self, peer: PeerFacts) -> AuthSession | Refused:
        """Connect to the service and get its mechanisms; return a temporary Refused if that fails or takes too long."""
        breaker = self.breaker
        if not breaker.admit():
            return self._refused("it has failed too often and is left alone for a while")
        session: _Session | None = None
        try:
            with _in_time(self.facts, "its mechanisms did not come"):
                session = await self._call()
                await session.receive_mechanisms()
        except _Failure as failure:
            breaker.failed()
            if session is not None:
                session.close()
            return self._refused(str(failure))
        except BaseException:
            breaker.gave_up()
            if session is not None:
                session.close()
            raise
        breaker.reached()
        return session

    async def _call(self) -> _Session:
        """Return a new connection to the service; OSError, TlsFailed."""
        facts, terms = self.facts, self.terms
        sock = await connect(Endpoint(facts.host, facts.port), None)
        try:
            local = ipaddress.ip_address(sock.getpeername()[0].partition("%")[0]).is_loopback
            channel = None
            if terms.ssl_profile:
                verify = terms.verify_hostname
                channel = await self._secure.call(sock, terms.ssl_profile, facts.host, verify_hostname=verify)
            below = trio.SocketStream(trio.socket.from_stdlib_socket(sock))
        except BaseException:
            sock.close()
            raise
        stream: trio.abc.Stream = below
        if channel is not None:
            from trouter.tls.stream import SecureStream  # noqa: PLC0415  # a room that a service without TLS does without

            stream = SecureStream(below, channel)
        secret = channel is not None or terms.allow_insecure_plain == "yes"
        secret |= local and terms.allow_insecure_plain == "loopback"
        return _Session(self, stream, below.socket.close, secret)

    def _refused(self, why: str) -> Refused:
        log.warning("authServicePlugin %s: %s", self.facts.name, why)
        return Refused(f"the authentication service {self.facts.name}: {why}", temporary=True)

    def _log_state(self, opened: bool) -> None:
        """Log and record that the breaker has opened or closed."""
        facts = self.facts
        if opened:
            log.error(
                "authServicePlugin %s (%s:%s) fails repeatedly: the router refuses logins that need it, and tries it "
                "again at intervals",
                facts.name,
                facts.host,
                facts.port,
            )
        else:
            log.info("authServicePlugin %s (%s:%s) answers again", facts.name, facts.host, facts.port)
        state = "raised" if opened else "cleared"
        self._recorder.alarm(Alarm(name="authService", severity="critical", subject=facts.name, state=state))


class _Session:
    """A connection to the service for one peer."""

    def __init__(
        self, service: RemoteAuthService, stream: trio.abc.Stream, drop: Callable[[], None], may_see_passwords: bool
    ) -> None:
        facts = service.facts
        self.mechanisms: Sequence[str] = ()
        self._service = service
        self._stream = stream
        self._drop = drop
        self._may_see_passwords = may_see_passwords
        self._sasl = SaslClient(LIMITS.max_sasl_rounds)
        own = Open(
            container_id="",
            hostname=facts.host,
            max_frame_size=LIMITS.max_frame_bytes,
            channel_max=LIMITS.channel_max,
            desired_capabilities=CAPABILITIES,
            properties={"product": "trouter", "version": trouter.__version__},
        )
        self._engine = Connection(LIMITS, own, [], self._sasl, server=False)

    async def receive_mechanisms(self) -> None:
        """Exchange SASL headers and store the mechanisms; _Failure, OSError, trio.BrokenResourceError."""
        event = await self._next()
        if not isinstance(event, SaslMechanismsOffered):
            raise _Failure("it did not send its SASL mechanisms")
        self.mechanisms = tuple(
            name for name in event.mechanisms if self._may_see_passwords or not mechanism_of(name).in_clear
        )

    async def start(self, mechanism: str, response: bytes | None) -> Challenge | Authenticated | Refused:
        self._sasl.send_init(mechanism, response, self._service.facts.realm)
        return await self._verdict()

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        self._sasl.send_response(response)
        return await self._verdict()

    def close(self) -> None:
        """Drop the connection without a close, as services expect."""
        self._drop()
        self._engine.drop_references()

    async def _verdict(self) -> Challenge | Authenticated | Refused:
        """Return the service's answer to the peer's last response."""
        try:
            with _in_time(self._service.facts, "it did not answer"):
                event = await self._next()
        except _Failure as failure:  # perhaps because of the peer's response, so the breaker does not count it
            return self._service._refused(str(failure))
        if isinstance(event, SaslChallengeReceived):
            return Challenge(event.challenge)
        if not isinstance(event, SaslFinished):
            return self._service._refused("it ended the SASL exchange early")
        if event.code != SASL_OK:
            self._service.breaker.succeeded()
            return Refused("the authentication service refused the user", temporary=event.code == SASL_SYS_TEMP)
        return await self._grant(event.additional or b"")

    async def _grant(self, additional: bytes) -> Authenticated | Refused:
        """Return the user and the rights that the service grants; ``additional`` is the outcome's data for the peer."""
        service = self._service
        self._engine.open()
        try:
            with _in_time(service.facts, "it did not send its open"):
                event = await self._next()
                if not isinstance(event, ConnectionOpened):
                    raise _Failure("it admitted the peer, but closed the connection instead of sending its open")
        except _Failure as failure:
            service.breaker.failed()
            return service._refused(str(failure))
        service.breaker.succeeded()
        properties = event.open.properties
        try:
            user = user_of(properties, lenient=service.terms.lenient)
            permissions = permissions_of(properties, optional=service.terms.authz_optional)
        except BadGrant as bad:
            log.error(
                "authServicePlugin %s admits a user, but its description of the user is invalid: %s",
                service.facts.name,
                bad,
            )
            return Refused(f"the authentication service sent an invalid answer: {bad}")
        return Authenticated(user, additional, permissions=permissions)

    async def _next(self) -> Event:
        """Return the next event of the service; _Failure, OSError, trio.BrokenResourceError."""
        engine = self._engine
        engine.receive_data(b"")  # input that waited for our answer
        if engine.out:
            written = bytes(engine.out)
            engine.out.clear()
            await self._stream.send_all(written)
        while not engine.events:
            data = await self._stream.receive_some(READ_BYTES)
            if not data:
                raise _Failure("it closed the connection")
            engine.receive_data(bytes(data))
        event = engine.events.pop(0)
        if isinstance(event, ConnectionClosed) and event.fault is not None:
            raise _Failure("it violated the protocol")
        return event


@contextmanager
def _in_time(facts: AuthServiceFacts, late: str) -> Iterator[None]:
    """Convert every error in the context, and more than ``timeout_s`` seconds, to a _Failure."""
    try:
        with trio.fail_after(facts.timeout_s):
            yield
    except trio.TooSlowError:
        raise _Failure(f"{late} within {facts.timeout_s:g} s") from None
    except TlsFailed as failed:
        raise _Failure(str(failed)) from None
    except OSError as error:
        raise _Failure(f"it cannot be reached: {cause(error)}") from None
    except trio.BrokenResourceError:
        raise _Failure("the connection broke") from None
