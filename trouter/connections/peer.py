"""One connection, accepted or dialled: the seven objects that it consists of, what it is for the other rooms, its end.

These are, besides the engine's: ``Peer``, its lifetime and its login (``auth/login.py`` or ``dialled``), which it is
made with, the record, the stream over the socket, and, once the peer's open is admitted, the membership and the
sessions with their links. Each is complete when it is made. None of them refers to the peer, so that everything is
freed as soon as the peer has ended. ``serving`` has the task that handles the connection's events.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

import trio

from trouter.admission.memory import SHORT_OF_MEMORY
from trouter.columns.connections import CONNECTION, Moment
from trouter.columns.rows import Rows
from trouter.config.workers import WORKERS_HOST
from trouter.core.containers import Container, DetachReason
from trouter.core.identities import Identities
from trouter.core.tenants import Tenant
from trouter.core.terms import ROUTE_CONTAINER, ROUTER_ROLES
from trouter.engine.connection import Connection
from trouter.engine.events import ConnectionClosed
from trouter.engine.faults import Fault, PeerFault
from trouter.engine.link_base import Link
from trouter.engine.sasl import UNENCRYPTED
from trouter.engine.session import Session
from trouter.hooks import PeerFacts
from trouter.net.shares import ROUTER_WEIGHT, ProcessorShare
from trouter.net.timers import NEVER, Timer
from trouter.net.turns import host_key
from trouter.net.view import PeerCertificates
from trouter.telemetry.connection_records import ConnectionRecord, describe_open
from trouter.telemetry.refusals import MEMORY, NOT_AMQP, POLICY, SASL, TIMEOUT, TLS
from trouter.tls.secure import SecurityLayer
from trouter.wire.performatives import Error, Open

from .lifetime import DialledLifetime, Lifetime
from .membership import Membership
from .opening import ANONYMOUS, OpenRefused, PeerOpen, first_open, later_open, limit_by_group
from .peer_login import PeerLogin
from .router_parts import RouterParts
from .shared import PeerSettings
from .states import PeerStep
from .stream import Stream

TENANT_CHANGED: Final = Error("amqp:connection:forced", "the connection belongs to another tenant now")

_ROWS: Final = Rows(CONNECTION, None)

core_log = logging.getLogger("trouter.ROUTER_CORE")


class Peer:
    """One connection; for the other rooms it is a ``net.view.ConnectionView``."""

    __slots__ = (
        "_parts", "_timer", "engine", "facts", "hub", "lifetime", "login", "membership", "poller", "record", "security",
        "settings", "stream",
    )  # fmt: skip

    def __init__(
        self,
        sock: socket.socket,
        facts: PeerFacts,
        security: SecurityLayer,
        settings: PeerSettings,
        lifetime: Lifetime,
        login: PeerLogin,
        parts: RouterParts,
    ) -> None:
        """Make the connection of a peer on ``sock``."""
        hub, poller, recorder = parts.hub, parts.poller, parts.recorder
        self.facts = facts
        self.security = security
        self.settings = settings
        self.lifetime = lifetime
        self.login = login
        self.hub = hub
        self.poller = poller
        self._parts = parts
        own_open = first_open(settings, facts.connection_id, self._identities)
        self.engine = Connection(
            settings.limits,
            replace(own_open, hostname=facts.remote_host) if login.outgoing else own_open,
            hub.outbox,
            login.sasl,
            server=not login.outgoing,
            budget=parts.budget,
            frequent=hub.frequent_frames,
            owner=self,
        )
        self.record = ConnectionRecord(recorder, lifetime.label, self.engine.out)
        self.record.follow_log(midway=False)
        if facts.listener.host == WORKERS_HOST:
            recorder.leave_out(facts.connection_id)
        share = poller.shares.join(host_key(facts.remote_host))
        self.stream = Stream(sock, security.channel, self.engine, self.record, lifetime, poller, share)
        #: None until the peer's open is admitted.
        self.membership: Membership | None = None
        #: The timer of heartbeats and idle time-out; None without both, and until the peer is admitted.
        self._timer: Timer | None = None

    # --- its beginning and its end, called by ``serving``

    def answer_open(self, remote: Open) -> None:
        """Admit the peer if the policy allows it, and register the connection with the router's parts."""
        settings, login, engine = self.settings, self.login, self.engine
        login.note_open()
        try:
            self.membership = membership = self._join_router(remote)
        except OpenRefused as refused:
            self.lifetime.note_refusal(MEMORY if refused.error is SHORT_OF_MEMORY else POLICY)
            engine.open()
            self.lifetime.end_connection(refused.error)  # and everything that came with the open is ignored
            return
        login.close()
        self.lifetime.note_opened(login.expires_at_s)
        if (later := later_open(settings, login, self.number, membership.tenant, self._identities)) is not None:
            engine.replace_limits(settings.limits, later)
        if not login.outgoing:
            limit_by_group(membership.policy.admission.settings, engine)
        engine.open()
        engine.forget_open()
        membership.register(self, remote)
        self._parts.connections.add(self)
        self.follow_log()
        if engine.idle.tick_period_s:
            self._timer = self._parts.timers.add(
                "heartbeats", self._tick_engine, trio.current_time() + engine.idle.tick_period_s, self
            )
        core_log.info("%s", describe_open(self, remote))
        self.record.open(self, remote)
        membership.offer_uplink(self)
        if settings.role in (ROUTE_CONTAINER, "inter-router"):
            self.hub.router.container_came(self.as_container())

    def _share_with_user(self, vhost: str) -> ProcessorShare:
        """Let what the connection does count as its user's; a router, which carries many clients, has its own share."""
        shares, user = self.poller.shares, self.login.user
        shares.leave(self.stream.share)
        if self.settings.role in ROUTER_ROLES:
            share = shares.join(("router", self.number), ROUTER_WEIGHT)
        else:
            named = bool(user) and self.login.mechanism not in ("", ANONYMOUS.upper())
            share = shares.join(("user", vhost, user) if named else ("client", vhost, host_key(self.facts.remote_host)))
        self.stream.share = share
        return share

    def _join_router(self, remote: Open) -> Membership:
        """Return the part in the router of a connection whose peer sent ``remote`` and may open; OpenRefused."""
        opening = PeerOpen(self.facts, self.settings, self.login, remote)
        tenant, policy = self._parts.admission.admit_connection(opening, self)
        share = self._share_with_user(policy.admission.vhost)
        return self._parts.admission.make_membership(opening, self.engine, self.lifetime, tenant, policy, share)

    @property
    def _identities(self) -> Identities:
        return self.hub.router.table.tenants.identities

    def note_close(self, event: ConnectionClosed) -> None:
        """Note and answer the close of the peer, or of the engine because of its fault."""
        if event.fault is not None:
            self.record.note_end("local", event.fault.condition)
            self.lifetime.note_refusal(refusal_of(event.fault))
            self.lifetime.log_failure(str(event.fault))
        else:
            self.record.note_end("peer", "" if event.error is None else event.error.condition)
            self.lifetime.note_close(event.error)
            if self.membership is not None:
                self.membership.note_close()
        self.engine.close()

    def _tick_engine(self, now_s: float) -> float:
        """Send a heartbeat if one is due, and end the connection if it exceeded its idle time-out."""
        engine = self.engine
        engine.tick(now_s)
        if not engine.finished:
            return now_s + engine.idle.tick_period_s
        for event in engine.events:
            if isinstance(event, ConnectionClosed):
                self.note_close(event)
        engine.events.clear()
        self.hub.flush()
        self.lifetime.scope.cancel()
        return NEVER

    def release_all(self) -> None:
        """Undo what made the connection, in the inverse order.

        It is not async, so that no cancellation can skip it, and a bug in one part of it skips none of the others.
        """
        bugs: list[Exception] = []
        for step in self._release_steps():
            try:
                step()
            except Exception as error:  # noqa: BLE001 - it is raised once all is released
                bugs.append(error)
        if bugs:
            raise ExceptionGroup(f"{self.lifetime.label} internal errors in the release of the connection", bugs)

    def _release_steps(self) -> Iterator[Callable[[], object]]:
        """Yield what undoes each part of the connection, the last that was made first."""
        number = self.number
        yield self.stream.stop
        if self._timer is not None:
            yield partial(self._parts.timers.cancel, self._timer)
        yield partial(self._parts.connections.remove, number)
        if self.membership is not None:
            yield from self.membership.release_steps(self)
        yield self.login.close
        yield self.hub.flush
        yield partial(self.record.close, self, self.lifetime.close_error)
        yield partial(self._parts.recorder.forget_connection, number)
        yield self.engine.drop_references
        yield self.stream.close
        yield partial(self.poller.shares.leave, self.stream.share)
        yield self.lifetime.mark_ended
        if self.lifetime.opened:
            yield partial(core_log.info, "%s Connection Closed", self.lifetime.label)

    # --- facts for the other rooms, see ConnectionView

    @property
    def number(self) -> int:
        return self.facts.connection_id

    @property
    def is_active(self) -> bool:
        return self.membership is None or self.membership.is_active

    @property
    def certificates(self) -> PeerCertificates:
        return self.security.certificates

    @property
    def tenant(self) -> Tenant | None:
        return None if self.membership is None else self.membership.tenant

    @property
    def refusal(self) -> str:
        """Why the peer could not open the connection, one of ``REASONS``; empty if it did, or left by itself."""
        if self.lifetime.opened:
            return ""
        return self.lifetime.refusal or (SASL if self.login.refused else "")

    @property
    def leaves_in_drain(self) -> bool:
        return self.settings.leaves_in_drain

    def count_unsettled(self) -> int:
        return 0 if self.membership is None else self.membership.sessions.count_unsettled()

    @property
    def trace(self) -> bool:
        return self.record.shows_frames

    @trace.setter
    def trace(self, wanted: bool) -> None:
        self.record.decide_frames(wanted, midway=self.lifetime.opened)

    def describe_connection(self) -> dict[str, Any]:
        remote, membership = self.engine.remote_open, self.membership
        vhost = remote.hostname if remote is not None else None
        if membership is not None:
            vhost = membership.policy.admission.vhost or vhost
        return {
            "conn": self.number,
            "vhost": vhost or None,
            "user": self.login.user or None,
            "host": self.facts.remote_host,
            "tenant": None if self.tenant is None else self.tenant.name,
        }

    def build_management_row(self, now_s: float) -> dict[str, object]:
        last_delivery_s = self._parts.connections.last_delivery_s(self.number, now_s)
        return _ROWS.row(Moment(self, now_s, last_delivery_s, self._identities))

    def received_bytes(self) -> int:
        return self.record.bytes_in

    # --- orders of the other rooms, see ConnectionView

    def write_output(self) -> None:
        """See ``ConnectionOwner``."""
        self.stream.write_nowait()

    def drop_after_bug(self, error: Exception) -> None:
        """See ``ConnectionOwner``."""
        self.stream.drop_after_bug(error)

    def force_close(self, error: Error) -> None:
        self._parts.connections.remove(self.number)
        self.lifetime.end_connection(error, PeerStep.DELETE)

    def close_at_once(self, error: Error) -> None:
        self.force_close(error)
        self._write_close()

    def end_login(self) -> None:
        if not self.lifetime.closing and not self.engine.finished:
            self.lifetime.end_expired()
            self._write_close()

    def _write_close(self) -> None:
        if self.lifetime.opened:
            self.engine.close(self.lifetime.close_error)

    def turn_out(self, error: Error) -> None:
        self.lifetime.end_connection(error)

    def abort_connection(self, why: str) -> None:
        self.lifetime.note_refusal(TIMEOUT)  # it counts before the open only
        self.stream.abort(why)

    def follow_policy(self, vhost: str) -> None:
        """Apply the changed policy to the connection; close it if it would change its tenant."""
        membership, remote = self.membership, self.engine.remote_open
        if membership is None or remote is None or self.lifetime.is_ending or self.engine.finished:
            return  # it is ending
        tenant = "" if membership.tenant is None else membership.tenant.name
        opening = PeerOpen(self.facts, self.settings, self.login, remote)
        if not self._parts.admission.keeps_tenant(opening, tenant, vhost):
            self.lifetime.end_connection(TENANT_CHANGED)
            return
        membership.sessions.apply_policy()
        self.hub.flush()

    def follow_log(self) -> None:
        self.record.follow_log(midway=self.lifetime.opened)

    def suspend_credit(self, suspended: bool) -> None:
        if self.membership is not None:
            self.membership.sessions.suspend_credit(suspended)

    def stop_messages(self) -> None:
        if self.membership is not None:
            self.membership.sessions.stop_messages()

    def as_container(self) -> Container:
        assert self.membership is not None  # noqa: S101 - only open connections are asked
        return self.membership.sessions.as_container(self.settings.given_name)

    def begin_own_sessions(self, count: int) -> list[Session]:
        assert self.membership is not None  # noqa: S101 - only open connections are asked
        return self.membership.sessions.begin_own_sessions(count)

    # --- notices of core and network, see ConnectionView

    def note_in_use(self) -> None:
        if isinstance(self.lifetime, DialledLifetime):
            self.lifetime.serving.set()

    def link_ended(self, link: Link, reason: DetachReason) -> None:
        if self.membership is not None:
            self.membership.sessions.note_ended(link, reason)


def refusal_of(fault: PeerFault) -> str:
    """Return the reason for which a peer with this fault before its open is refused."""
    if fault.fault is Fault.TLS_NOT_CONFIGURED or fault.text == UNENCRYPTED:
        return TLS
    return SASL if fault.fault is Fault.FORBIDDEN else NOT_AMQP
