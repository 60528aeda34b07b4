"""Periodic checks: stuck deliveries, blocked links (routing.md 5.6), rates."""

from __future__ import annotations

import logging
from typing import Final

import trio

from trouter.admission.guard import Guard
from trouter.connections.registry import Connections
from trouter.core.router import Router
from trouter.net.hub import Hub
from trouter.net.owner import owner_of
from trouter.telemetry.link_records import LinkRecords

#: Seconds between two rounds; each round scans a portion of the links.
LOOK_S: Final = 1.0

log = logging.getLogger("trouter.ROUTER_CORE")


async def make_rounds(hub: Hub, connections: Connections, links: LinkRecords, guard: Guard) -> None:
    """Check connections, handshakes and links every ``LOOK_S`` until cancelled; send the output that this causes."""
    while True:
        await trio.sleep(LOOK_S)
        now_s = trio.current_time()
        connections.look(now_s)
        guard.handshakes.cut_slow()
        _log_stalls(hub.router, links, now_s)
        hub.flush()


def _log_stalls(router: Router, links: LinkRecords, now_s: float) -> None:
    """Log and record stalled links; apart from the task, whose local variables would keep a link alive in its sleep."""
    for notice in router.scan(now_s):
        links.stalled(router, notice)
        link = notice.link
        owner = owner_of(link)
        identity = getattr(link.sink, "identity", 0)
        log.info("[C%d][L%d] %s", 0 if owner is None else owner.number, identity, notice.text)
