"""What the sink of an inlet handles, for sinks of other packages: they import it from here, compiled ones its C types.

A ``LinkSink`` gets the transfers of ``Connection.open_inlet``, frame by frame; their link is an ``IncomingLink``.
``sink.pxd`` has the same names for `cimport`.
"""

from __future__ import annotations

from trouter.engine.deliveries import new_delivery
from trouter.engine.link import IncomingLink
from trouter.engine.ports import Delivery, LinkPort, LinkSink, SessionPort

__all__ = ["Delivery", "IncomingLink", "LinkPort", "LinkSink", "SessionPort", "new_delivery"]
