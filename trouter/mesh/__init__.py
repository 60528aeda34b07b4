"""Routers together, without I/O and without a clock: which there are, the ways to them, and what they listen on."""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)
