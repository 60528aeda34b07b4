"""What is looked at now and then: deliveries that are stuck, links that are blocked (routing.md 5.6)."""

from __future__ import annotations

import logging
from typing import Any, Final

import trio

from trouter.core.router import Router

#: Between two looks; each is a portion of the whole.
LOOK_S: Final = 1.0

log = logging.getLogger("trouter.ROUTER_CORE")


async def make_rounds(router: Router) -> None:
    """Look for ever, and tell of each link once."""
    while True:
        await trio.sleep(LOOK_S)
        for notice in router.scan(trio.current_time()):
            link = notice.link
            peer: Any = link.session.connection.owner
            log.info("[C%d][L%d] %s", peer.facts.connection_id, link.handle, notice.text)
