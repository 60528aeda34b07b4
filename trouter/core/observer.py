"""The events that a router causes by itself, for logs, records and clocks."""

from __future__ import annotations

from trouter.engine.link_base import Link

from .autolinks import AutoLinkObserver
from .containers import DetachReason


class RouterObserver(AutoLinkObserver):
    """The receiver of these events; the base ignores them."""

    def ended(self, link: Link, reason: DetachReason) -> None:
        """Note that the router ends a link, before it sends the detach."""
