"""What authors of plugins, and our own tests, try a router with.

``MemoryRouter`` does without sockets, tasks and time; ``open_router`` is a whole router on a port of this machine; and
``conformance`` is a suite for a plugin, to be run by its own tests.
"""

from __future__ import annotations

from .loopback import LoopbackRouter, open_router
from .memory import MemoryClient, MemoryReceiver, MemoryRouter, MemorySender, ReceivedMessage, SentMessage, compose

__all__ = [
    "LoopbackRouter",
    "MemoryClient",
    "MemoryReceiver",
    "MemoryRouter",
    "MemorySender",
    "ReceivedMessage",
    "SentMessage",
    "compose",
    "open_router",
]
