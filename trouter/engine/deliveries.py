"""Make a delivery where one is made per message.

The compiled twin takes ``new_delivery`` from ``deliveries.pxd``, which relies on
C fields being zero and None at birth, as ``Delivery`` wants them, and so skips
the constructor; like ``wire.octets`` it has two bodies for want of another way.
"""

from __future__ import annotations

from .ports import Delivery, LinkPort


def new_delivery(link: LinkPort) -> Delivery:
    """Return ``Delivery(link)``; compiled, without running its ``__init__``."""
    return Delivery(link)
