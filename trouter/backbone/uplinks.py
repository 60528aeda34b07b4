"""The uplinks of an edge router: one is active, the others are on standby (inter-router.md 6.1)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

import trio

from trouter.core.edge.uplink import SESSIONS, Uplink
from trouter.core.lookups import LOOKUP_S, LookupResult, Query, question
from trouter.core.refusals import AttachRefused
from trouter.core.terms import PeerTerms
from trouter.engine.faults import Misuse
from trouter.engine.link_base import Link
from trouter.net.hub import Hub
from trouter.net.view import ConnectionView
from trouter.telemetry.clocks import now_us
from trouter.wire.performatives import Error

#: Of equal complaints in a row the log has the first, the tenth, the hundredth and so on.
COMPLAINTS_BASE: Final = 10

log = logging.getLogger("trouter.ROUTER")


class Complaints:
    """Counts equal complaints in a row, and decides which of them the log has."""

    def __init__(self) -> None:
        #: The last complaint, empty for none.
        self.last = ""
        self._count = 0
        self._next = 1

    def count(self, why: str) -> int:
        """Count a complaint; return how many equal ones there were if it is to be logged, else 0."""
        if why != self.last:
            self.forget_complaints()
            self.last = why
        self._count += 1
        if self._count < self._next:
            return 0
        self._next *= COMPLAINTS_BASE
        return self._count

    def forget_complaints(self) -> None:
        """Begin anew: the next complaint is logged."""
        self.last, self._count, self._next = "", 0, 1


class UplinkConnection:
    """A connection to an interior router, as the owner of the uplink on it."""

    def __init__(self, uplinks: Uplinks, owner: ConnectionView) -> None:
        self._uplinks = uplinks
        self._owner = owner

    def note_usable(self) -> None:
        """See ``UplinkOwner``."""
        self._uplinks.establish(self._owner)

    def note_trouble(self, why: str) -> None:
        """Report a problem with which the connection stays in use."""
        log.error("[C%d] %s", self._owner.number, why)
        self._owner.note_in_use()

    def note_broken(self, why: str) -> None:
        """See ``UplinkOwner``."""
        self._uplinks.give_up(self._owner, why)


class Uplinks:
    """Open connections to interior routers, in the order in which they opened; the first is active."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._open: list[ConnectionView] = []
        self._active: Uplink | None = None
        #: The active uplink has been usable, and the log says so.
        self._established = False
        #: Since when no uplink has been usable, in microseconds since 1970; 0 while one is.
        self.down_since_us = now_us()
        self._complaints = Complaints()

    @property
    def fault(self) -> str | None:
        """The reason why the active uplink cannot be used, empty if it can be; None if no connection is active."""
        active = self._active
        if active is None or active.usable:
            return None if active is None else ""
        return active.refusal or self._complaints.last or "the interior router has not answered yet"

    def is_active(self, number: int) -> bool:
        """Return whether the connection of this number is the active one."""
        return self._active is not None and self._active.number == number

    def add_uplink(self, owner: ConnectionView) -> None:
        """Add an open connection; use it if none is active."""
        self._open.append(owner)
        if self._active is None:
            self.activate_next()
        else:
            owner.note_in_use()
            log.info("uplink [C%d] is a standby: another uplink is active", owner.number)

    def remove_uplink(self, owner: ConnectionView) -> None:
        """Remove a connection, unless it was given up, before its links are lost; then call ``activate_next``."""
        if owner not in self._open:
            return
        self._open.remove(owner)
        if self._active is not None and self._active.number == owner.number:
            self._active.stop_using_links()
            self._active = None
            if self._established:
                self._established = False
                self.down_since_us = now_us()
                log.info("Edge connection (id=%d) to interior lost", owner.number)

    def activate_next(self) -> None:
        """Use the connection that has been open longest, if none is active; close those that cannot be used."""
        if self._active is not None:
            return
        for owner in list(self._open):
            try:
                sessions, container = owner.begin_own_sessions(SESSIONS), owner.as_container()
                self._active = Uplink(
                    self._hub.router,
                    container,
                    sessions,
                    container.terms.link_capacity,
                    UplinkConnection(self, owner),
                )
                self._active.attach_links()
            except (Misuse, AttachRefused) as error:
                self._active = None
                self.give_up(owner, f"an uplink needs {SESSIONS} sessions with links: {error}")
                continue
            return

    def establish(self, owner: ConnectionView) -> None:
        """Note that the interior router has taken all needed links of the active connection."""
        self._complaints.forget_complaints()
        if not self._established:
            self._established = True
            self.down_since_us = 0
            log.info("Edge connection (id=%d) to interior established", owner.number)
        owner.note_in_use()

    def give_up(self, owner: ConnectionView, why: str) -> None:
        """Close a connection that cannot serve as uplink, so that the connector dials again."""
        if times := self._complaints.count(why):
            repeated = f" ({times} times)" if times > 1 else ""
            log.error("[C%d] cannot use the uplink%s: %s", owner.number, repeated, why)
        self.remove_uplink(owner)
        owner.turn_out(Error("amqp:not-allowed", why[:200]))

    async def find(self, links: Sequence[Link], terms: PeerTerms) -> Mapping[Link, LookupResult]:
        """Return the interior router's answers about the addresses that a client attaches to, within ``LOOKUP_S``.

        A link is absent if no look-up was needed, or if it has no answer.
        """
        uplink = self._active
        if uplink is None:
            return {}
        queries: list[tuple[Link, Query, trio.Event]] = []
        for link in links:
            asked, done = question(self._hub.router, link, terms), trio.Event()
            query = None if asked is None else uplink.send_query(*asked, done.set)
            if query is not None:
                queries.append((link, query, done))
        self._hub.flush()
        with trio.move_on_after(LOOKUP_S):
            for _, _, done in queries:
                await done.wait()
        for _, query, _ in queries:
            uplink.forget_query(query)
        return {link: query.answer for link, query, _ in queries}

    def send_heartbeat(self) -> None:
        """Send a heartbeat to the interior router; to be called every ``BEAT_S`` seconds."""
        if self._active is not None:
            self._active.send_heartbeat()
