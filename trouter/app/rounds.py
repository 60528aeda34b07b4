"""The check of every second: slow handshakes, stuck deliveries, blocked links (routing.md 5.6), rates."""

from __future__ import annotations

import logging
from typing import Final

from trouter.admission.guard import Guard
from trouter.connections.registry import Connections
from trouter.core.router import Router
from trouter.net.view import owner_of
from trouter.telemetry.link_records import LinkRecords

#: Seconds between two checks; each scans a portion of the links.
ROUND_S: Final = 1.0

log = logging.getLogger("trouter.ROUTER_CORE")


def make_round(router: Router, connections: Connections, links: LinkRecords, guard: Guard) -> None:
    """Check connections, handshakes and links; to be called every ``ROUND_S``."""
    now_s = router.shared.now_s
    connections.note_deliveries(now_s)
    guard.handshakes.abort_slow()
    for notice in router.watch_links(now_s):
        links.stalled(router, notice)
        link = notice.link
        owner = owner_of(link)
        identity = getattr(link.sink, "identity", 0)
        log.info("[C%d][L%d] %s", 0 if owner is None else owner.number, identity, notice.text)
