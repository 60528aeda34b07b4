"""Make the deliveries of the core, once per message and link.

The compiled twin takes these functions from ``deliveries.pxd``, which skips the constructors: C fields are zero and
None from the start, as the classes want them. Like ``wire.octets`` it needs two bodies.
"""

from __future__ import annotations

from trouter.engine.ports import LinkPort

from .message import IncomingDelivery, OutgoingDelivery


def new_incoming(link: LinkPort) -> IncomingDelivery:
    """Return ``IncomingDelivery(link)``; the compiled twin does not run its ``__init__``."""
    return IncomingDelivery(link)


def new_outgoing(link: LinkPort) -> OutgoingDelivery:
    """Return ``OutgoingDelivery(link)``; the compiled twin does not run its ``__init__``."""
    return OutgoingDelivery(link)
