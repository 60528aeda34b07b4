"""Logs the links that the router attaches of its own accord, and retries failed ones.

The core has no clock, so a failed auto link waits here for its retry (routing.md 6.2). An auto link without its
connection does not wait: it is attached when the connection opens again.
"""

from __future__ import annotations

import logging

import trio

from trouter.core.autolinks import Activation
from trouter.core.containers import Container, DetachReason
from trouter.core.observer import RouterObserver
from trouter.core.routes import LinkRoute
from trouter.engine.link_base import Link
from trouter.logs.peer_text import name_word, quoted
from trouter.net.timers import NEVER, TimerQueue
from trouter.net.view import owner_of

log = logging.getLogger("trouter.ROUTER_CORE")


class OwnLinks(RouterObserver):
    """The observer of the router's own links, with the failed ones that wait for a retry."""

    def __init__(self, queue: TimerQueue) -> None:
        #: Failed auto link -> time of its retry, in seconds on the clock of the event loop.
        self._due: dict[Activation, float] = {}
        self._queue = queue
        self._timer = queue.add("links tried again", self._retry_due)

    # --- events of the router

    def ended(self, link: Link, reason: DetachReason) -> None:
        """See ``RouterObserver``."""
        owner = owner_of(link)
        if owner is not None:
            owner.link_ended(link, reason)

    def note_activated(self, activation: Activation) -> None:
        """See ``RouterObserver``."""
        rule = activation.auto.rule
        log.info("Auto Link Activated %s on %s", quoted(rule.name), _where(rule.connection, activation.container))

    def note_failed(self, activation: Activation) -> None:
        """See ``RouterObserver``."""
        auto = activation.auto
        where = _where(auto.rule.connection, activation.container)
        log.info("Auto Link Activation Failed. %s %s on %s", activation.why, quoted(auto.rule.name), where)
        self._due[activation] = due_s = trio.current_time() + auto.next_retry_s()
        self._queue.advance(self._timer, due_s)

    def note_idle(self, activation: Activation) -> None:
        """See ``RouterObserver``."""
        self._due.pop(activation, None)

    def note_route(self, route: LinkRoute, container: Container, active: bool) -> None:
        """Log that a container got a link route, or lost it."""
        what = "Activated" if active else "Deactivated"
        log.info("Link Route %s %s on %s", what, quoted(route.name), _where(route.connection, container))

    # --- the clock

    def _retry_due(self, now_s: float) -> float:
        """Retry the failed links that are due; return when the next one is."""
        for activation in [each for each, due_s in self._due.items() if due_s <= now_s]:
            del self._due[activation]
            activation.retry_link()
        return min(self._due.values(), default=NEVER)


def _where(connection: str, container: Container) -> str:
    return f"connection {connection}" if connection else f"container {name_word(container.container_id)}"
