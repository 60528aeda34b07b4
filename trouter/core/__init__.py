"""Routing between peers: addresses, forwarders, deliveries, credit. One owner, no locks, no clock, no I/O.

A message passes these modules: ``incoming`` reads its head and finds its address, ``forwarders`` choose the receivers,
and ``outgoing`` sends it, perhaps after a wait. ``incoming_parts`` has what an incoming link consists of: its sender's
credit, the frames of an unfinished message, and the answers to the sender.
"""

from __future__ import annotations

from trouter import _twin

_twin.select(__path__)
