"""Routing between peers: addresses, forwarders, deliveries, credit. One owner, no locks, no clock, no I/O.

The way of a message, by module: ``intake`` gathers its frames; ``ingress`` decides where it goes, and keeps what has
to be known of it meanwhile in an ``arrival``; ``forwarders`` choose the receivers; ``egress`` sends it, after it has
waited in the ``backlog``. ``settlement`` tells its sender the outcome; ``credit`` lets the sender send more.
"""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)
