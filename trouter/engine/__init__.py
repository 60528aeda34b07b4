"""The protocol of one connection without I/O: bytes in, events out; commands in, bytes out (AMQP 1.0 parts 2 and 5)."""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)
