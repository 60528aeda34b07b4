"""The uplinks of an edge router: one is active, the others are on standby (inter-router.md 6.1)."""

from __future__ import annotations

import logging
from typing import Protocol

import trio

from trouter.core.containers import Container
from trouter.core.edge.uplink import BEAT_S, SESSIONS, Uplink
from trouter.core.lookups import LOOKUP_S, LookupResult, question
from trouter.core.refusals import AttachRefused
from trouter.core.terms import PeerTerms
from trouter.engine.faults import Misuse
from trouter.engine.link_base import Link
from trouter.engine.session import Session
from trouter.net.hub import Hub
from trouter.wire.performatives import Error

log = logging.getLogger("trouter.ROUTER")


class UplinkOwner(Protocol):
    """An owner of an open connection to an interior router."""

    @property
    def number(self) -> int:
        """The number of the connection in log lines, ``[C<n>]``."""

    def begin_uplink(self, count: int) -> list[Session]:
        """Begin ``count`` sessions and return them; Misuse if the interior router allows no more."""

    def uplink_container(self) -> tuple[Container, int]:
        """Return the connection as a container of routed links, and the capacity of its links."""

    def turn_out(self, error: Error) -> None:
        """Close the connection."""


class Uplinks:
    """Open connections to interior routers, in the order in which they opened; the first is active."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._open: list[UplinkOwner] = []
        self._active: Uplink | None = None

    def is_active(self, number: int) -> bool:
        """Return whether the connection of this number is the active one."""
        return self._active is not None and self._active.number == number

    def enter(self, owner: UplinkOwner) -> None:
        """Add an open connection; use it if none is active."""
        self._open.append(owner)
        if self._active is None:
            self.go_on()
        else:
            log.info("uplink [C%d] is a standby: another uplink is active", owner.number)

    def leave(self, owner: UplinkOwner) -> None:
        """Remove a connection before its links are lost; call ``go_on`` after that. A second call does nothing."""
        if owner not in self._open:
            return
        self._open.remove(owner)
        if self._active is not None and self._active.number == owner.number:
            self._active.end()
            self._active = None
            log.info("Edge connection (id=%d) to interior lost", owner.number)

    def go_on(self) -> None:
        """Use the connection that has been open longest, if none is active; close those that cannot be used."""
        if self._active is not None:
            return
        for owner in list(self._open):
            try:
                sessions = owner.begin_uplink(SESSIONS)
                container, capacity = owner.uplink_container()
                uplink = Uplink(self._hub.router, container, sessions, capacity)
                uplink.on_broken = lambda why, owner=owner: self._break(owner, why)  # type: ignore[misc]
                uplink.on_trouble = lambda why, number=owner.number: log.error("[C%d] %s", number, why)  # type: ignore[misc]
                self._active = uplink
                uplink.begin()
            except (Misuse, AttachRefused) as error:
                self._active = None
                self._break(owner, f"an uplink needs {SESSIONS} sessions with links: {error}")
                continue
            log.info("Edge connection (id=%d) to interior established", owner.number)
            return

    def _break(self, owner: UplinkOwner, why: str) -> None:
        """Close a connection that cannot serve as uplink, so that the connector dials again."""
        log.error("[C%d] cannot use the uplink: %s", owner.number, why)
        self.leave(owner)
        owner.turn_out(Error("amqp:not-allowed", why[:200]))

    async def find(self, link: Link, terms: PeerTerms) -> LookupResult:
        """Return the interior router's answer about the address that a client attaches to, within ``LOOKUP_S``."""
        uplink, asked = self._active, question(self._hub.router, link, terms)
        if uplink is None or asked is None:
            return LookupResult.MESSAGES
        done = trio.Event()
        query = uplink.query(*asked, done.set)
        if query is None:
            return LookupResult.MESSAGES
        self._hub.flush()
        with trio.move_on_after(LOOKUP_S):
            await done.wait()
        uplink.give_up(query)
        return query.answer

    async def run(self) -> None:
        """Send heartbeats to the interior router, until cancelled."""
        while True:
            await trio.sleep(BEAT_S)
            if self._active is not None:
                self._active.beat()
                self._hub.flush()
