"""The connections of a listener: which are WebSockets, which wait, and whether more are accepted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio


class Door:
    """Counts the WebSockets of a listener and lists the connections that may be ended without harm."""

    def __init__(self) -> None:
        #: No new WebSockets are accepted.
        self.draining = False
        #: No new requests are accepted either.
        self.stopping = False
        self.websockets = 0
        #: The scopes of waiting connections, the longest waiting first.
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
        """List a connection while it waits for its client, so that cancelling ``scope`` can end it."""
        if self.stopping:
            scope.cancel()
        self._waiting[scope] = None
        try:
            yield
        finally:
            self._waiting.pop(scope, None)

    def give_up_one(self) -> bool:
        """End the connection that waits longest; return whether there was one."""
        for scope in self._waiting:
            del self._waiting[scope]
            scope.cancel()
            return True
        return False

    def stop(self) -> None:
        """End all connections that wait: complete requests are still answered, others are dropped."""
        self.draining = self.stopping = True
        while self.give_up_one():
            pass
