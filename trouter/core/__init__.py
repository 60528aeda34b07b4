"""Routing between peers: addresses, forwarders, deliveries, credit. One owner, no locks, no clock, no I/O."""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)
