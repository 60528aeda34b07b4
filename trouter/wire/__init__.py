"""The encoding of AMQP 1.0: bytes to values and back. This room imports no other room."""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)
