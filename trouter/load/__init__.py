"""The load generator behind ``trouter bench``: senders, receivers and sinks that cost less than what they measure."""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)
