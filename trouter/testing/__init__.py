"""What authors of plugins, and our own tests, use to try a router without sockets, tasks or time."""

from __future__ import annotations

from .memory import MemoryClient, MemoryReceiver, MemoryRouter, MemorySender, ReceivedMessage, SentMessage, compose

__all__ = [
    "MemoryClient",
    "MemoryReceiver",
    "MemoryRouter",
    "MemorySender",
    "ReceivedMessage",
    "SentMessage",
    "compose",
]
