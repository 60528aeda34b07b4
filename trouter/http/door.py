"""Which connections are open, which wait, and whether more are admitted: the state shared within a listener."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio


class Door:
    """Counts the WebSockets among a listener's connections and knows those that can be given up without harm."""

    def __init__(self) -> None:
        #: No new WebSockets.
        self.draining = False
        #: No new requests either.
        self.stopping = False
        self.websockets = 0
        #: In the order in which they began to wait.
        self._waiting: dict[trio.CancelScope, None] = {}

    @contextmanager
    def websocket(self) -> Iterator[None]:
        """Count a WebSocket while it is served."""
        self.websockets += 1
        try:
            yield
        finally:
            self.websockets -= 1

    @contextmanager
    def waiting(self, scope: trio.CancelScope) -> Iterator[None]:
        """List a connection while it waits for its client, and cancelling ``scope`` would end it."""
        if self.stopping:
            scope.cancel()
        self._waiting[scope] = None
        try:
            yield
        finally:
            self._waiting.pop(scope, None)

    def give_up_one(self) -> bool:
        """End the connection that waits longest; whether there was one."""
        for scope in self._waiting:
            del self._waiting[scope]
            scope.cancel()
            return True
        return False

    def stop(self) -> None:
        """Let no connection wait any longer: requests that are complete are still answered, others are dropped."""
        self.draining = self.stopping = True
        while self.give_up_one():
            pass
