"""Routing between peers: addresses, forwarders, deliveries, credit. One owner, no locks, no clock, no I/O.

A message passes these modules: ``intake`` gathers its frames; ``ingress`` decides where it goes, and keeps its state in
an ``arrival`` meanwhile; ``forwarders`` choose the receivers; ``egress`` sends it, perhaps after a wait in the
``backlog``. ``settlement`` sends its sender the outcome; ``credit`` grants the sender more.
"""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)
