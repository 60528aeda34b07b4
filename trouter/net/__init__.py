"""The parts that every connection uses: sockets, poller, hub, timers, and configured parts that can be replaced."""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)
