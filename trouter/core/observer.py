"""Who hears what a router does of its own accord, beside what peers ask of it: for logs, records and clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trouter.engine.link import Link

if TYPE_CHECKING:
    from .autolinks import Activation
    from .containers import DetachReason


class RouterObserver:
    """Hears, and does not look."""

    def ended(self, link: Link, reason: DetachReason) -> None:
        """The router ends a link; the peer has yet to be told."""

    def activated(self, activation: Activation) -> None:
        """An auto link's link stands."""

    def failed(self, activation: Activation) -> None:
        """An auto link's link was detached or lost; the owner is to ``retry`` it after a while."""

    def idle(self, activation: Activation) -> None:
        """An auto link has no use for its connection any more: it is not to be retried."""
