"""Test kit for routers, for authors of plugins and for the project's own tests.

``MemoryRouter`` needs no sockets, tasks or time; ``open_router`` runs a whole router on a local port; ``player`` plays
connections of a whole router in memory; ``conformance`` is a suite that a plugin's own tests run.
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
