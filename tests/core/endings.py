"""How links end in tests of the core."""

from __future__ import annotations

from trouter.testing import MemoryReceiver, MemorySender, SentMessage


def leave(how: str, link: MemorySender | MemoryReceiver, sent: SentMessage | None = None) -> None:
    """End a link, or the message on it, in the given way."""
    if how == "detach":
        link.detach()
    elif how == "end":
        link.client.end()
    elif how == "drop":
        link.client.drop()
    elif sent is not None:
        sent.abort()
    link.client.pump()
