"""The message that is under way through the router from where it came in, while its receivers are looked for."""

from __future__ import annotations

from typing import Final

from trouter.wire.sections import MessageScan

from .annotations import CachedAnnotations
from .message import Message

#: The priority of messages without one (inter-router.md 1.6).
DEFAULT_PRIORITY: Final = 4
_DEFAULT_PRIORITY = DEFAULT_PRIORITY
_HIGHEST_PRIORITY = 9


class Arrival:
    """The message under way, as forwarders and outgoing links see it. Each incoming link has one, and keeps it.

    It holds for one message, from when that is routed to when the next one is; what is kept for longer is noted in a
    ``Message``.
    """

    __slots__ = ("cut_from", "cut_to", "origin", "annotations", "phase", "priority", "rewrites", "to", "trace")

    def __init__(self) -> None:
        #: 0 to 9.
        self.priority: int = DEFAULT_PRIORITY
        #: The router where it entered ("" for here), and the routers that it has passed, as annotations name them.
        self.origin = ""
        self.trace: tuple[str, ...] = ()
        #: It came with routers' annotations, which most receivers are not to see.
        self.rewrites = False
        #: What routers said of it, None if it came without annotations.
        self.annotations: CachedAnnotations | None = None
        #: What it is to go by elsewhere, where that is not what its sender wrote.
        self.to: str | None = None
        self.phase = 0
        #: Where annotations stand in it, or would stand.
        self.cut_from = 0
        self.cut_to = 0

    def begin(self, scan: MessageScan, annotations: CachedAnnotations | None, from_neighbour: bool) -> None:
        """Note what the head of the next message says; of one from another router, also which way it came."""
        self.to = None
        self.phase = 0
        self.annotations = annotations
        self.rewrites = annotations is not None and annotations.parsed.had_router_keys
        self.cut_from = scan.insert_at
        self.cut_to = scan.insert_at if scan.annotations_end < 0 else scan.annotations_end
        priority = scan.priority
        self.priority = _DEFAULT_PRIORITY if priority < 0 else min(priority, _HIGHEST_PRIORITY)
        if from_neighbour:
            came_by = None if annotations is None else annotations.parsed.ingress
            self.origin = "" if came_by is None else came_by
            self.trace = () if annotations is None else annotations.parsed.trace

    def describe(self, message: Message, to: str | None, phase: int, start: int) -> None:
        """Note in ``message`` what the router says of it, which goes by ``to`` elsewhere and began at ``start``."""
        message.annotations = self.annotations
        message.rewrites = self.rewrites
        message.to = to
        message.phase = phase
        message.cut_from = self.cut_from - start
        message.cut_to = self.cut_to - start
