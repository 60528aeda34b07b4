"""The management node: requests that come as messages to ``$management``, answered from the router's state.

``Agent`` serves them; ``ports`` has what it needs of the process.
"""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)

from trouter.management.agent import Agent  # noqa: E402 - the twin is chosen first
from trouter.management.ports import ReloadReport  # noqa: E402

__all__ = ["Agent", "ReloadReport"]
