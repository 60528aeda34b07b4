"""The events that a router causes of its own accord, beside what peers ask of it: for logs, records and clocks."""

from __future__ import annotations

from trouter.engine.link_base import Link

from .autolinks import AutoLinkObserver
from .containers import DetachReason


class RouterObserver(AutoLinkObserver):
    """Is notified of each of these events; the base ignores them."""

    def ended(self, link: Link, reason: DetachReason) -> None:
        """Note that the router ends a link; the peer has yet to be told."""
