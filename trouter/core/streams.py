"""Links between routers for messages that are still incoming when they are routed.

A long message would hold up later ones on the link of its priority, and one with a stalled receiver would close the
window of a shared session. So each gets a link and a session of its own; both are reused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trouter.engine.faults import Misuse
from trouter.engine.session import Session

from .egress import Egress, Streaming

#: The capability of a neighbour that accepts such links.
STREAMING_LINKS: Final = "qd.streaming-links"
#: Links of one connection that streams may use at once; further ones take the link of their priority, or address.
MAX_STREAMS: Final = 256
#: Idle links to keep, seconds between checks, and links closed in one check.
KEPT_IDLE: Final = 128
SCRUB_EVERY_S: Final = 30.0
SCRUBBED_AT_ONCE: Final = 10


class StreamPool:
    """The links of one connection on which we send unfinished messages, one at a time on each."""

    __slots__ = ("_attach", "_begin", "_end", "_idle", "_links", "_max_links", "detach")

    def __init__(
        self,
        begin: Callable[[], Session],
        end: Callable[[Session], None],
        attach: Callable[[Session], Egress],
        detach: Callable[[Egress], None],
    ) -> None:
        """Make a pool; ``begin`` returns a session of ours (or raises Misuse), which ``end`` ends."""
        self._begin = begin
        self._end = end
        self._attach = attach
        self.detach = detach
        #: All links, and those without a message; the one used last is taken first.
        self._links: dict[Egress, None] = {}
        self._idle: dict[Egress, None] = {}
        self._max_links = MAX_STREAMS

    @property
    def count(self) -> int:
        """Number of links."""
        return len(self._links)

    @property
    def idle(self) -> int:
        """Number of links that wait for a message."""
        return len(self._idle)

    def borrow_link(self) -> Egress | None:
        """Return a link for the message that is offered to it next; None if there are no more."""
        if self._idle:
            return self._idle.popitem()[0]
        if len(self._links) >= self._max_links:
            return None
        try:
            session = self._begin()
            outgoing = self._attach(session)
        except Misuse:
            self._max_links = len(self._links)  # the neighbour has no room for more
            return None
        outgoing.streaming = Streaming(owner=self)
        self._links[outgoing] = None
        return outgoing

    def return_link(self, outgoing: Egress) -> None:
        """Take the link back: its message has ended or was given up."""
        if outgoing in self._links:
            self._idle[outgoing] = None

    def forget_link(self, outgoing: Egress) -> None:
        """End the session of a link that has ended."""
        if outgoing in self._links:
            del self._links[outgoing]
            self._idle.pop(outgoing, None)
            if outgoing.link.remote_attach is None or outgoing.link.remote_attach.target is None:
                self._max_links = len(self._links)  # refused
            session = outgoing.link.session
            if session.mapped:
                self._end(session)

    def close_idle(self) -> None:
        """Close the links idle longest, if too many are idle; to be called every ``SCRUB_EVERY_S``."""
        for _ in range(min(len(self._idle) - KEPT_IDLE, SCRUBBED_AT_ONCE)):
            self.detach(next(iter(self._idle)))
