"""Connections from their first byte to their last, accepted or dialled, with their listeners and connectors."""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)
