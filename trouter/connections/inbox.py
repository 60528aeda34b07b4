"""The events of one session that wait, in order, for answers of an edge router's interior router."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import trio

from trouter.engine.events import LinkAttached, LinkDetached, SessionEnded

from .settings import EVENTS_AT_ONCE

#: Events of one session that may wait before reading pauses.
BACKLOG: Final = 256

InboxEvent = LinkAttached | LinkDetached | SessionEnded


class Inbox:
    """The attaches and detaches of one session's new links, and its end."""

    __slots__ = ("_receiver", "_sender", "emptied")

    def __init__(self) -> None:
        """Make an empty inbox."""
        self._sender, self._receiver = trio.open_memory_channel[InboxEvent](BACKLOG)
        #: All events are answered, and the inbox is out of use.
        self.emptied = trio.Event()

    async def put(self, event: InboxEvent) -> None:
        """Add an event; wait while the inbox is full."""
        try:
            self._sender.send_nowait(event)
        except trio.WouldBlock:
            await self._sender.send(event)

    def take_events(self) -> list[InboxEvent]:
        """Return the next events, at most as many as the peer's task takes from one read."""
        events: list[InboxEvent] = []
        with suppress(trio.WouldBlock):
            while len(events) < EVENTS_AT_ONCE:
                events.append(self._receiver.receive_nowait())
        return events
