"""The message that was received on an incoming link, while its receivers are looked for."""

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
    """The message under way, as forwarders and outgoing links see it. Each incoming link has one and reuses it.

    It is valid from the routing of one message to that of the next; a ``Message`` copies what is needed longer.
    """

    __slots__ = ("cut_from", "cut_to", "origin", "annotations", "phase", "priority", "rewrites", "to", "trace")

    def __init__(self) -> None:
        #: 0 to 9.
        self.priority: int = DEFAULT_PRIORITY
        #: The router where it entered ("" for this one), and the routers that it passed, as annotations name them.
        self.origin = ""
        self.trace: tuple[str, ...] = ()
        #: It has router annotations, which most receivers must not get.
        self.rewrites = False
        #: Its annotations; None if it has none.
        self.annotations: CachedAnnotations | None = None
        #: The address and phase for other routers, if they differ from the sender's.
        self.to: str | None = None
        self.phase = 0
        #: The offsets of its message annotations, or of the place for them.
        self.cut_from = 0
        self.cut_to = 0

    def begin(self, scan: MessageScan, annotations: CachedAnnotations | None, from_neighbour: bool) -> None:
        """Set the fields for the next message; origin and trace only if it is from another router."""
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
        """Copy the message's state to ``message``; ``start`` is its offset, ``to`` its address elsewhere."""
        message.annotations = self.annotations
        message.rewrites = self.rewrites
        message.to = to
        message.phase = phase
        message.cut_from = self.cut_from - start
        message.cut_to = self.cut_to - start
