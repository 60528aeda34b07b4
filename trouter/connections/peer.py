"""One connection, accepted or dialled: an engine, a transport, and a nursery for its tasks.

The poller reads and routes (``transport``). The task of ``run`` handles the rare events, and nothing more is read until
it has. Whatever ends the peer ends all tasks. ``PeerLogin`` has what differs between accepted and dialled connections.
"""

from __future__ import annotations

import logging
import socket
from dataclasses import replace
from typing import Any, Final

import trio

from trouter.core.containers import DetachReason
from trouter.core.messagelog import MessageLog
from trouter.core.terms import ROUTE_CONTAINER
from trouter.engine.connection import Connection
from trouter.engine.events import (
    ConnectionClosed,
    ConnectionOpened,
    Event,
    LinkAttached,
    LinkDetached,
    SessionBegun,
    SessionEnded,
)
from trouter.engine.link_base import Link
from trouter.hooks import PeerFacts
from trouter.logs import TRACE
from trouter.logs.frame_log import FrameLog
from trouter.net.timers import NEVER, Timer
from trouter.policy.judge import Admission
from trouter.telemetry.connection_records import Account, describe_open
from trouter.tls.secure import SecurityLayer
from trouter.wire.performatives import Error, Open

from .lifetime import Lifetime
from .listed import ListedConnection
from .membership import Membership
from .opening import OpenAdmission, first_open, limit_by_group
from .peer_login import UNWATCHED, PeerLogin, Watcher
from .sessions import Sessions
from .shared import PeerSettings, Services
from .transport import Transport

TENANT_CHANGED: Final = Error("amqp:connection:forced", "the connection belongs to another tenant now")

message_log = logging.getLogger("trouter.MESSAGE")
core_log = logging.getLogger("trouter.ROUTER_CORE")


class Peer:
    """Serves one connection until it ends, with a ``login`` and a ``lifetime`` of its own; ``watcher`` is notified."""

    __slots__ = (
        "_account", "_admission", "_hub", "_login", "_membership", "_number", "_nursery", "_security", "_services",
        "_sessions", "_settings", "_timer", "_transport", "_watcher", "connection", "lifetime", "listed",
        "write_nowait",
    )  # fmt: skip

    def __init__(
        self,
        sock: socket.socket,
        facts: PeerFacts,
        settings: PeerSettings,
        services: Services,
        login: PeerLogin,
        lifetime: Lifetime,
        security: SecurityLayer,
        watcher: Watcher = UNWATCHED,
    ) -> None:
        self.lifetime = lifetime
        self._number = facts.connection_id
        self._security = security
        self._settings = settings
        self._services = services
        self._hub = services.hub
        self._login = login
        self._watcher = watcher
        self._account = Account(services.recorder)
        self._timer: Timer | None = None  # calls _tick; None without heartbeats and idle time-out
        self.connection = self._converse(facts)
        self.connection.owner = self
        frames = FrameLog(lifetime.label, self.connection.out)
        self._transport = lifetime.transport = Transport(
            lifetime,
            sock,
            security.channel,
            self.connection,
            settings.limits,
            self._account,
            frames,
            services.hub,
            services.poller,
        )
        #: Bound directly, because the hub calls it for every write.
        self.write_nowait = self._transport.write_nowait
        login.attach(self.connection, self._transport)
        self._admission = OpenAdmission(facts, settings, services, login)
        turn_out = lifetime.end  # one bound method for both
        self._sessions = Sessions(self._hub, self.connection, lifetime.label, turn_out, services)
        self._sessions.max_links = settings.max_links
        self._membership = Membership(
            self._number, login.outgoing, self.connection, self._sessions, settings, services, turn_out, watcher
        )
        #: The connection for other parts.
        self.listed = ListedConnection(
            facts,
            settings,
            security,
            self.connection,
            lifetime,
            login,
            self._admission,
            self._sessions,
            self._membership,
            frames,
            services.connections,
        )
        self.listed.follow_log()

    def _converse(self, facts: PeerFacts) -> Connection:
        """Return a new connection of the engine."""
        settings, outgoing = self._settings, self._login.outgoing
        own_open = first_open(settings, self._number)
        return Connection(
            settings.limits,
            replace(own_open, hostname=facts.remote_host) if outgoing else own_open,
            self._hub.outbox,
            self._login.sasl,
            server=not outgoing,
            budget=self._services.budget,
        )

    @property
    def number(self) -> int:
        return self._number

    def about(self) -> dict[str, Any]:
        """Return the fields common to all records about the connection."""
        return self.listed.about()

    async def run(self) -> None:
        """Serve until the connection ends; then settle its links and deliveries."""
        lifetime, transport = self.lifetime, self._transport
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = transport.nursery = nursery
                self._hub.flush()  # the first octets of an outgoing connection
                began_s = trio.current_time() if self._security.began_s is None else self._security.began_s
                timeout_s = self._settings.handshake_timeout_s
                with lifetime.scope as serving:
                    serving.deadline = began_s + timeout_s
                    await self._receive_early()
                    await self._serve()
                if serving.cancelled_caught and lifetime.opened and trio.current_time() >= self._login.expires_at_s:
                    self._expire()
                ordered = lifetime.opened or transport.gone or lifetime.is_ending or self.connection.finished
                if serving.cancelled_caught and not ordered:
                    lifetime.log_failure(f"timed out: no open within {timeout_s:g} s")
                elif not transport.gone:
                    self.connection.close(lifetime.farewell)
                    self._hub.flush()
                await self._membership.lose_by_and_by()
                if not transport.gone:
                    await transport.linger()
                nursery.cancel_scope.cancel()
        finally:
            self._forget()

    def _expire(self) -> None:
        if not self.connection.finished:
            self.lifetime.expire()

    async def _receive_early(self) -> None:
        """Process the bytes that were read before the peer was made."""
        self._hub.update_clock()
        if self._transport.receive_early(self._security.early):
            self._hub.flush()
            await self._handle_events()
            await self._transport.wait_for_room()

    async def _serve(self) -> None:
        """Let the poller read, and handle the events of a read before the next one."""
        while not (self.connection.finished or self._transport.gone):
            await self._transport.wait_for_events()
            await self._handle_events()
            await self._transport.wait_for_room()

    # --- events

    async def _handle_events(self) -> None:
        connection = self.connection
        while connection.events:
            events = connection.events[:]
            connection.events.clear()
            for event in events:
                if not self.lifetime.is_ending:  # else everything is ignored
                    await self._handle(event)
            self._hub.flush()
            if connection.has_more:
                await trio.lowlevel.checkpoint()
                await self._transport.wait_for_room()
                connection.receive_data(b"")

    async def _handle(self, event: Event) -> None:
        if isinstance(event, LinkAttached):
            await self._sessions.pass_on(event, self._nursery)
        elif isinstance(event, LinkDetached):
            trunk = self._membership.trunk
            self._watcher.detached(event, control=trunk is not None and trunk.is_control(event.link.sink))
            if not self.lifetime.is_ending:
                await self._sessions.pass_on(event, self._nursery)
        elif isinstance(event, SessionBegun):
            self._sessions.begin(event.session, ours=event.begin.remote_channel is not None)
        elif isinstance(event, SessionEnded):
            self._sessions.end(event)
        elif isinstance(event, ConnectionOpened):
            self._open(event.open)
        elif isinstance(event, ConnectionClosed):
            self._watcher.closed(event)
            self._close(event)
        else:
            await self._login.handle(event)

    def _open(self, remote: Open) -> None:
        """Admit the peer if the policy allows it, and register the connection with the router's parts."""
        settings, services, listed = self._settings, self._services, self.listed
        self._login.opens()
        error = self._admission.admit(remote, self)
        policy = self._admission.policy
        if error is not None or policy is None:
            self._turn_away(error)
            return
        self._login.close()
        self.lifetime.admit(self._login.expires_at_s)
        components = settings.logged_components
        log = MessageLog(components, self._log_message) if components else None
        self._membership.come(remote, self._login.user, log)
        self._sessions.admit(self._admission.terms(self._membership, log), policy)
        if settings.withholds_version and (self._login.mechanism or self._login.user):
            self.connection.adopt(settings.limits, settings.open(self._number))
        if not self._login.outgoing:
            limit_by_group(policy.admission.settings, self.connection)
        self.connection.open()
        self._membership.join(remote)
        services.connections.add(listed)
        listed.follow_log()
        if self.connection.tick_period_s:
            self._timer = services.timers.add(self._tick, trio.current_time() + self.connection.tick_period_s)
        line = describe_open(listed, remote)
        core_log.info("%s", line)
        self._account.open(listed, remote)
        self._membership.stand_by()
        if settings.role in (ROUTE_CONTAINER, "inter-router"):
            self._hub.router.container_came(listed.as_container())
        self._watcher.opened(line)

    def _turn_away(self, error: Error | None) -> None:
        """Answer the peer's open and close at once; ignore everything that came with it."""
        self.connection.open()
        if error is not None:
            self.lifetime.end(error)

    def _log_message(self, link: Link, text: str) -> None:
        message_log.log(TRACE, "%s: %s", self.lifetime.label, text)

    def _close(self, event: ConnectionClosed) -> None:
        if event.fault is not None:
            self._account.ends("local", event.fault.condition)
            self.lifetime.log_failure(str(event.fault))
        else:
            self._account.ends("peer", "" if event.error is None else event.error.condition)
            self._sessions.close_error = event.error
        self.connection.close()

    # --- orders of the policy

    def follow(self, admission: Admission) -> None:
        """Apply the changed policy to the connection; close it if it would change its tenant."""
        if self.lifetime.is_ending or self.connection.finished:
            return  # it is ending
        if not self._admission.stays(admission.vhost):
            self.lifetime.end(TENANT_CHANGED)
            return
        self._sessions.judge_again()
        self._hub.flush()

    def turn_out(self, error: Error) -> None:
        """Close the connection with ``error``; the peer has ``LINGER_S`` to answer."""
        self.lifetime.end(error)

    def received_bytes(self) -> int:
        """Return the bytes received on the connection, within TLS."""
        return self._account.bytes_in

    # --- notices of core and engine

    def link_ended(self, link: Link, reason: DetachReason) -> None:
        """Detach a link of the connection that the router ends by itself."""
        self._sessions.ended(link, reason)

    def _tick(self, now_s: float) -> float:
        """Send a heartbeat if one is due, and end the connection if it exceeded its idle time-out."""
        self.connection.tick(now_s)
        if self.connection.finished:
            self._end_idle()
            return NEVER
        return now_s + self.connection.tick_period_s

    def _end_idle(self) -> None:
        for event in self.connection.events:
            if isinstance(event, ConnectionClosed):
                self._close(event)
        self.connection.events.clear()
        self._hub.flush()
        self.lifetime.scope.cancel()

    # --- the end

    def _forget(self) -> None:
        """Release everything; not async, so that no cancellation can skip it."""
        self._transport.stop()
        self._login.close()
        if self._timer is not None:
            self._services.timers.cancel(self._timer)
        self._services.connections.remove(self._number)
        self._membership.lose_all_links()
        self._services.policy.leave(self._number, self._sessions.had)
        self._sessions.forget()
        self._membership.leave()
        self._hub.flush()
        self._account.close(self.listed, self.lifetime.farewell)
        self._admission.leave()
        self.connection.forget()
        self._transport.close()
        self.lifetime.forget()
        if self.lifetime.opened:
            core_log.info("%s Connection Closed", self.lifetime.label)
