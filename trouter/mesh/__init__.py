"""The network of routers, without I/O and clock: its members, the ways to them, and the addresses of each."""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)
