"""Make a delivery, once per message.

The compiled twin takes ``new_delivery`` from ``deliveries.pxd``, which skips the constructor: C fields are zero and
None from the start, as ``Delivery`` wants them. Like ``wire.octets`` it needs two bodies.
"""

from __future__ import annotations

from .ports import Delivery, LinkPort


def new_delivery(link: LinkPort) -> Delivery:
    """Return ``Delivery(link)``; the compiled twin does not run its ``__init__``."""
    return Delivery(link)
