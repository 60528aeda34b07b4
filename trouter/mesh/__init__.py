"""Routers together, without I/O and without a clock: who is there, the ways to them, and who listens on what where."""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)
