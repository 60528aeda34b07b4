"""TLS for accepted and dialled connections, and rechecks while they are open (security.md 2, 8.4).

The libraries of TLS are imported with the first sslProfile, because many routers need none.
"""

from __future__ import annotations

import logging
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import trio

from trouter.config import Configuration, ConnectorEntity, ListenerEntity, SslProfileEntity
from trouter.hooks import CertificateFacts, PeerFacts, Plugins, Refused, TlsFacts
from trouter.net.peer_time import PeerTime, PeerTooSlow
from trouter.net.shares import Shares
from trouter.net.turns import TaskTurns, Threads, Turn, UncountedWaits
from trouter.net.view import NO_CERTIFICATES, ConnectionView, PeerCertificates
from trouter.net.waits import SocketWaits
from trouter.records import Alarm, TlsOutcome
from trouter.telemetry.recorder import Recorder
from trouter.telemetry.refusals import TIMEOUT, TLS
from trouter.wire.performatives import Error
from trouter.wire.types import Long

from .problems import TlsFailed

if TYPE_CHECKING:
    from .channel import TlsChannel
    from .contexts import ClientUse
    from .loaded import Loaded
    from .profiles import PendingProfiles, Renewal, TlsProfiles

#: What TLS with a client may take of the client's time until its open: this share, or so many seconds if it is less.
HANDSHAKE_SHARE: Final = 0.5
HANDSHAKE_S: Final = 5.0
#: What TLS with a dialled peer may take.
DIALLED_HANDSHAKE_S: Final = 10.0
#: Handshakes computed at once: at most half of the processors.
HANDSHAKES_AT_ONCE: Final = max(1, (os.cpu_count() or 1) // 2)
#: Interval of looks at the profiles' files.
WATCH_S: Final = 2.0
#: Interval of rechecks of open connections.
RECHECK_S: Final = 600.0

NO_LONGER_VALID: Final = Error("amqp:connection:forced", "credentials no longer valid")
OUT_OF_DATE: Final = Error("amqp:connection:forced", "the sslProfile of this connection is no longer valid")

log = logging.getLogger("trouter.SERVER")


@dataclass(frozen=True, slots=True)
class SecurityLayer:
    """The security layer of a connection: its plain socket, or TLS."""

    channel: TlsChannel | None = None
    #: Bytes that were read to detect the layer.
    early: bytes = b""
    #: When the peer's time until its open began, by trio's clock; None for now.
    began_s: float | None = None
    certificates: PeerCertificates = NO_CERTIFICATES


@dataclass(frozen=True, slots=True)
class Resumable:
    """A TLS session with a host, which a later connection to it may resume, and the chain that was verified then."""

    host: str
    session: ssl.SSLSession = field(repr=False)
    chain: tuple[bytes, ...] = field(repr=False)


#: The peer's facts after TLS, and its security layer.
SecuredPeer = tuple[PeerFacts, SecurityLayer]
#: The plain socket, with nothing read yet.
PLAINTEXT: Final = SecurityLayer()


def resumable(host: str, security: SecurityLayer) -> Resumable | None:
    """Return the session of a connection to ``host`` for resumption, or None."""
    session = None if security.channel is None else security.channel.session
    return None if session is None else Resumable(host, session, security.certificates.chain)


class Secure:
    """The TLS of a router: profiles, handshakes, rechecks."""

    def __init__(
        self,
        plugins: Plugins,
        connections: Mapping[int, ConnectionView],
        recorder: Recorder,
        clock: Callable[[], float] = time.time,
        waits: SocketWaits = trio.lowlevel,
        turns: TaskTurns | None = None,
    ) -> None:
        """``clock`` returns seconds since 1970; handshakes wait for their sockets by ``waits``.

        ``turns`` are those of the tasks that accept connections; None for a program whose tasks have none.
        """
        self._plugins = plugins
        self._connections = connections
        self._recorder = recorder
        self._clock = clock
        self._waits = waits
        self._profiles: TlsProfiles | None = None
        shares = Shares() if turns is None else turns.shares
        self._threads = Threads(shares, HANDSHAKES_AT_ONCE)
        #: Of the handshakes with peers that the router dials.
        self._own_share = shares.join("dialled")

    # --- another configuration

    async def prepare(self, configuration: Configuration, *, tolerant: bool = False) -> PendingSecure:
        """Load the profiles of ``configuration``; TlsProblems, unless ``tolerant`` of unusable ones."""
        profiles = self._profiles
        if profiles is None:
            if not configuration.ssl_profiles:
                return PendingSecure(self, None)
            profiles = await trio.to_thread.run_sync(_make_profiles, self._clock)
            self._profiles = profiles
        return PendingSecure(self, await profiles.prepare(configuration, tolerant=tolerant))

    def log_renewal(self, renewal: Renewal) -> None:
        """Log and record the result of a look at a profile's files."""
        name, problem = renewal.profile, renewal.problem
        if problem:
            log.critical("sslProfile %s: the router cannot use its new files and keeps the old ones: %s", name, problem)
        else:
            log.info("sslProfile %s: new connections use its new files", name)
        state = "raised" if problem else "cleared"
        self._recorder.alarm(Alarm(name="tls-renewal", severity="critical", subject=name, state=state, value=problem))

    def close_outdated(self) -> None:
        """Close the connections of generations that are not valid any more (R-2.1b)."""
        profiles = self._profiles
        if profiles is None:
            return
        for connection in list(self._connections.values()):
            shown = connection.certificates
            outdated = shown.profile and shown.ordinal < profiles.oldest_valid(shown.profile)
            if outdated and not connection.lifetime.closing:
                log.info("[C%d] closed: sslProfile %s has a newer generation", connection.number, shown.profile)
                connection.close_at_once(OUT_OF_DATE)

    def ends(self) -> Iterable[tuple[str, float]]:
        """Return each profile that has its own certificate, and when that expires, in seconds since 1970."""
        return () if self._profiles is None else self._profiles.ends()

    def left(self) -> Iterator[tuple[str, float]]:
        """Yield each profile that has its own certificate, and the seconds until that expires, 0 or less if it has."""
        now_s = self._clock()
        for name, end_s in self.ends():
            yield name, end_s - now_s

    def status(self, entity: SslProfileEntity) -> dict[str, object]:
        """Return the observed attributes of a profile in use."""
        end_s = dict(self.ends()).get(entity.name)
        return {} if end_s is None else {"certificateEnds": Long(int(end_s))}

    def has_certificate(self, name: str | None) -> bool:
        """Return whether the profile has its own certificate."""
        loaded = None if self._profiles is None else self._profiles.loaded(name or "")
        return loaded is not None and loaded.certificate is not None

    # --- connections on the way in and out

    async def accept(
        self,
        sock: socket.socket,
        facts: PeerFacts,
        entity: ListenerEntity,
        timeout_s: float,
        turn: Turn,
        refused: Callable[[str], None] | None = None,
    ) -> SecuredPeer | None:
        """Detect the peer's first layer and complete TLS; return None after a failure, which is logged.

        The task has its ``turn``, in which its waits do not count.

        ``timeout_s`` is the peer's time until its open, of which TLS has a part; waits for the router do not count.
        ``refused`` gets the reason, unless the peer has left.
        """
        from .opening import Layer, read_opening  # noqa: PLC0415

        whole, part_s = PeerTime(self._waits, timeout_s), max(HANDSHAKE_S, timeout_s * HANDSHAKE_SHARE)
        why = (
            f"timed out: TLS took more than {part_s:g} s; a longer initialHandshakeTimeoutSeconds gives it half of that"
        )
        alert, reason = "", TIMEOUT
        try:
            layer, early = await read_opening(sock, UncountedWaits(turn, whole))
            if layer is Layer.OTHER:
                self._check_clear(entity)
                security = SecurityLayer(early=early)
            else:
                security, loaded = await self._accept_tls(sock, entity, early, PeerTime(whole, part_s), turn)
                facts = self._judge(facts, security, loaded, maps_user=True)
            return facts, replace(security, began_s=trio.current_time() - whole.taken_s)
        except PeerTooSlow:
            if whole.is_over:
                why = f"timed out: no open within {timeout_s:g} s"
        except (TlsFailed, OSError) as error:
            why, alert = str(error), getattr(error, "alert", "")
            reason = TLS if isinstance(error, TlsFailed) else ""
        if reason and refused is not None:
            refused(reason)
        self._log_failure(facts, why, alert)
        return None

    async def _accept_tls(
        self, sock: socket.socket, entity: ListenerEntity, early: bytes, waits: SocketWaits, turn: Turn
    ) -> tuple[SecurityLayer, Loaded]:
        """Complete the handshake, and return the layer and the profile of its certificate."""
        from .channel import TlsChannel  # noqa: PLC0415

        found = None if self._profiles is None else self._profiles.server(entity)
        if found is None:
            raise TlsFailed(self._fault_of(entity) or "TLS: the listener's sslProfile is gone")
        loaded, context = found
        channel = TlsChannel(context, server=True)

        async def run_step(step: Callable[[], bool]) -> bool:
            turn.end()
            done = await self._threads.run(turn.share, step)
            turn.go_on()
            return done

        await channel.handshake(sock, UncountedWaits(turn, waits), run_step, early)
        profile = loaded.entity
        trusted = entity.trusted_certs_file or ""
        shown = PeerCertificates(_chain_of_client(channel), profile.name, profile.ordinal, trusted)
        return SecurityLayer(channel, certificates=shown), loaded

    def _fault_of(self, entity: ListenerEntity) -> str:
        """Return why the listener's sslProfile cannot be used, empty if it can."""
        name = entity.ssl_profile or ""
        fault = None if self._profiles is None else self._profiles.fault(name)
        return "" if fault is None else f"TLS: sslProfile {name} cannot be used: {fault.why}"

    def _check_clear(self, entity: ListenerEntity) -> None:
        """Raise TlsFailed if the listener may serve no client without TLS, because more than versions is at fault."""
        fault = None if self._profiles is None else self._profiles.fault(entity.ssl_profile or "")
        if fault is not None and not fault.versions_only:
            raise TlsFailed(self._fault_of(entity))

    async def dial(
        self, sock: socket.socket, facts: PeerFacts, entity: ConnectorEntity, host: str, known: Resumable | None = None
    ) -> SecuredPeer:
        """Complete a TLS handshake with the dialled peer; TlsFailed, OSError. Nothing is ever sent unencrypted.

        The session in ``known`` is resumed if it is one with ``host``.
        """
        found = None
        if self._profiles is not None:
            found = self._profiles.client(entity.ssl_profile or "", verify_hostname=entity.verify_hostname)
        if found is None:
            raise TlsFailed("TLS: the connector's sslProfile is gone")
        loaded, context, use = found
        if known is not None and known.host != host:
            known = None
        channel = _client_channel(context, host, use, None if known is None else known.session)
        with trio.move_on_after(DIALLED_HANDSHAKE_S):
            await channel.handshake(sock, self._waits, self._run_own_step)
            chain = known.chain if known is not None and channel.resumed else channel.chain()
            shown = PeerCertificates(chain, loaded.entity.name, loaded.entity.ordinal)
            security = SecurityLayer(channel, b"", None, shown)
            return self._judge(facts, security, loaded, maps_user=False), security
        raise TlsFailed(f"timed out: TLS took more than {DIALLED_HANDSHAKE_S:g} s")

    async def call(self, sock: socket.socket, name: str, host: str, *, verify_hostname: bool = True) -> TlsChannel:
        """Complete TLS with a service by the named profile; TlsFailed, OSError. The caller sets a deadline."""
        profiles = self._profiles
        found = None if profiles is None else profiles.client(name, verify_hostname=verify_hostname)
        if profiles is None or found is None:
            raise TlsFailed(f"sslProfile {name} is gone")
        channel = _client_channel(found[1], host, found[2])
        await channel.handshake(sock, self._waits, self._run_own_step)
        objection = profiles.objection(channel.chain(), name)
        if objection:
            raise TlsFailed(f"TLS: {objection}")
        return channel

    async def _run_own_step(self, step: Callable[[], bool]) -> bool:
        """Run a step of the handshake with a dialled peer in a thread."""
        return await self._threads.run(self._own_share, step)

    def _judge(self, facts: PeerFacts, security: SecurityLayer, loaded: Loaded, *, maps_user: bool) -> PeerFacts:
        """Return the peer's facts with TLS; TlsFailed if its certificate is invalid or a plugin refuses it."""
        channel = security.channel
        assert channel is not None  # noqa: S101 - there was a handshake
        subject = serial = user = ""
        chain = security.certificates.chain
        if chain:
            subject, serial, user = self._identify(security.certificates, loaded, maps_user=maps_user)
        name, bits = channel.cipher
        version = channel.version
        self._recorder.emit(
            _outcome(facts, ok=True, version=version, cipher=name, peer_subject=subject, peer_serial=serial)
        )
        return replace(
            facts,
            encrypted=True,
            tls=TlsFacts(version, name, bits, subject, chain[0] if chain else b"", user, channel.server_name),
            channel_bindings=channel.bindings((channel.chosen or loaded).certificate),
        )

    def _identify(self, shown: PeerCertificates, loaded: Loaded, *, maps_user: bool) -> tuple[str, str, str]:
        """Return subject, serial number and user of the peer's certificate; no user unless ``maps_user``. TlsFailed."""
        from cryptography import x509  # noqa: PLC0415

        from .names import distinguished_name  # noqa: PLC0415

        objection = self._objection(shown)
        if objection:
            raise TlsFailed(f"TLS: {objection}")
        certificate = x509.load_der_x509_certificate(shown.chain[0])
        subject, serial = distinguished_name(certificate.subject), f"{certificate.serial_number:X}"
        if not maps_user:
            return subject, serial, ""
        answer = self._plugins.map_uid(CertificateFacts(subject, shown.chain[0]), loaded.facts)
        if isinstance(answer, Refused):
            raise TlsFailed(f"TLS: {answer.reason}")
        return subject, serial, answer

    def _objection(self, shown: PeerCertificates) -> str:
        """Return why the peer's certificates are not valid now; "" if they are."""
        if self._profiles is None:
            return "its sslProfile is gone"
        return self._profiles.objection(shown.chain, shown.profile, shown.trusted_file)

    def _log_failure(self, facts: PeerFacts, why: str, alert: str) -> None:
        listener, number = facts.listener, facts.connection_id
        log.info(
            "%sConnection from %s:%d (to %s:%s) failed: %s",
            f"[C{number}] " if number else "",  # a peer of HTTP has no connection number
            *(facts.remote_host, facts.remote_port, listener.host, listener.port, why),
        )
        self._recorder.emit(_outcome(facts, ok=False, reason=why, alert=alert))

    # --- as time goes by

    async def renew_profiles(self) -> bool:
        """Renew changed profiles, and warn of certificates that expire soon.

        To be called every ``WATCH_S``. Return whether an unusable profile may have become usable, so that the
        connectors that need it can start.
        """
        profiles = self._profiles
        if profiles is None:
            return False
        for renewal in await profiles.renew():
            self.log_renewal(renewal)
        mended = await profiles.mended()
        for name, days, left_s in profiles.endings():
            left = f"ends in {left_s / 86_400:.1f} days" if left_s > 0 else "has ended"
            log.warning("sslProfile %s: its certificate %s", name, left)
            self._recorder.alarm(
                Alarm(
                    name="tls-certificate-ends",
                    severity="warning" if days > 1 else "critical",
                    subject=name,
                    state="raised",
                    value=f"{left_s / 86_400:.1f}",
                    limit=str(days),
                )
            )
        return mended

    async def recheck(self) -> None:
        """Close connections whose certificates have expired or been revoked; to be called every ``RECHECK_S``.

        All are checked before the first is closed, so that no peer whose connection ends hears of another's end.
        """
        invalid: list[tuple[ConnectionView, str]] = []
        for connection in [each for each in self._connections.values() if each.certificates.chain]:
            await trio.lowlevel.checkpoint()
            try:
                objection = self._objection(connection.certificates)
            except Exception as error:  # noqa: BLE001 - what cannot be checked is not trusted; the others are checked
                connection.drop_after_bug(error)
                continue
            if objection:
                invalid.append((connection, objection))
        for connection, objection in invalid:
            if self._connections.get(connection.number) is connection and not connection.lifetime.closing:
                log.info("[C%d] closed: %s", connection.number, objection)
                self._recorder.emit(TlsOutcome(conn=connection.number, ok=False, reason=objection))
                connection.close_at_once(NO_LONGER_VALID)


@dataclass(frozen=True, slots=True)
class PendingSecure:
    """Loaded profiles of a configuration."""

    secure: Secure
    profiles: PendingProfiles | None

    @property
    def faults(self) -> dict[str, str]:
        """Why profiles are unusable, by name."""
        return {} if self.profiles is None else {name: fault.why for name, fault in self.profiles.faults.items()}

    def apply(self) -> None:
        if self.profiles is not None:
            self.profiles.apply()
            for renewal in self.profiles.renewals:
                self.secure.log_renewal(renewal)
            self.secure.close_outdated()

    def drop(self) -> None:
        """Drop the change; nothing was opened."""


def _make_profiles(clock: Callable[[], float]) -> TlsProfiles:
    """Return new profiles; called in a thread, because it imports the libraries."""
    from .opening import Layer  # noqa: F401, PLC0415
    from .profiles import TlsProfiles  # noqa: PLC0415

    return TlsProfiles(clock)


def _chain_of_client(channel: TlsChannel) -> tuple[bytes, ...]:
    """Return the client's certificates; TlsFailed for a resumed session, which has the first of them only."""
    chain = channel.chain()
    if chain and channel.resumed:
        raise TlsFailed("TLS: a session was resumed, which has not all of the client's certificates")
    return chain


def _client_channel(
    context: ssl.SSLContext, host: str, use: ClientUse, session: ssl.SSLSession | None = None
) -> TlsChannel:
    """Return a channel that resumes ``session`` if it can; TlsFailed if ``host`` cannot be in a certificate."""
    from .channel import TlsChannel  # noqa: PLC0415

    try:
        return TlsChannel(context, server=False, hostname=host, compares_names=use.compares_names, session=session)
    except ValueError:
        if session is not None:  # the session belongs to a context from before a renewal
            return _client_channel(context, host, use)
        raise TlsFailed("TLS: this host name cannot appear in a certificate") from None


def _outcome(facts: PeerFacts, *, ok: bool, **texts: str) -> TlsOutcome:
    """Return the record of a handshake; ``texts`` are fields of the record, empty ones are left out."""
    known: dict[str, Any] = {name: text for name, text in texts.items() if text}
    return TlsOutcome(conn=facts.connection_id, host=facts.remote_host, ok=ok, listener=facts.listener.name, **known)
