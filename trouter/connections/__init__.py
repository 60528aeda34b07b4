"""Connections from their first byte to their last, accepted or dialled, with their listeners and connectors.

docs/architecture.md has a table of the objects that describe a connection, and of the reason for each.
"""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)
